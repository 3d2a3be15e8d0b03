// The log of answers of a running inlay serve: disks and readers that take no bytes, rotation, and
// files that are no logs.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/serve/http/raw_client.h"
#include "tests/tools/program.h"
#include "tests/tools/server_process.h"
#include "tests/wait_until.h"

namespace inlay {
namespace {

using serve::Get;
using serve::RawClient;
using ::testing::HasSubstr;

void Complete(const ServerProcess& server, const std::string& prompt) {
  const std::string body = nlohmann::json({{"prompt", prompt}, {"max_tokens", 2}}).dump();
  RawClient client(server.port());
  ASSERT_TRUE(client.Send(absl::StrCat(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: ",
      body.size(), "\r\n\r\n", body)));
  EXPECT_EQ(client.Read().status, 200);
}

TEST(AnswerLogTest, AReaderThatStandsStillStopsNobody) {
  const std::string log = ScratchPath("log.fifo");
  ASSERT_EQ(mkfifo(log.c_str(), 0600), 0);
  const int reader = open(log.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  ServerProcess server({"-m", kDemoModel, "-t", "1", "--drain", "1", "--answer-log", log});
  const std::string prompt(2000, 'a');
  for (int i = 0; i < 40; ++i) Complete(server, prompt);
  std::string piece(size_t{1} << 20, '\0');
  EXPECT_GT(read(reader, piece.data(), piece.size()), 32768) << "the pipe was full";
  for (int i = 0; i < 40; ++i) Complete(server, prompt);
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
  close(reader);
}

TEST(AnswerLogTest, AFullDiskIsToldAndCounted) {
  ServerProcess server({"-m", kDemoModel, "-t", "1", "--answer-log", "/dev/full"});
  Complete(server, "ROMEO:");
  EXPECT_TRUE(server.WaitFor("answers are not logged for now: cannot write /dev/full"));
  EXPECT_THAT(Get(server.port(), "/metrics").body, HasSubstr("inlay_answer_log_failed_total 1\n"));
}

TEST(AnswerLogTest, IsOpenedAgainAtAHangup) {
  const std::string log = ScratchPath("answers.jsonl"), old = absl::StrCat(log, ".1");
  ServerProcess server({"-m", kDemoModel, "-t", "1", "--answer-log", log});
  ASSERT_EQ(rename(log.c_str(), old.c_str()), 0);
  server.Signal(SIGHUP);
  ASSERT_TRUE(server.WaitFor("opened the answer log again"));
  Complete(server, "ROMEO:");
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
  EXPECT_EQ(ReadFile(old), "");
  EXPECT_THAT(ReadFile(log), HasSubstr("\"prompt\""));
}

// A log grows without a bound, and takes long to replay.
TEST(AnswerLogTest, ReplayReadsLineByLineAndTellsWhatItFindsAtOnce) {
  const std::string log = ScratchPath("log.fifo"), out = ScratchPath("out");
  ASSERT_EQ(mkfifo(log.c_str(), 0600), 0);
  WriteFile(out, "");
  ProgramOptions options{.output_path = out};
  options.while_running = [&](pid_t) {
    std::ofstream writer(log);
    writer << "{}\n" << std::flush;
    EXPECT_TRUE(WaitUntil([&] { return !ReadFile(out).empty(); }));
    EXPECT_THAT(ReadFile(out), HasSubstr(":1: the record is none"));
    // More than is read of other inputs.
    const std::string empty_lines(size_t{1} << 20, '\n');
    for (int i = 0; i < 257; ++i) writer << empty_lines;
    writer << "{}";
  };
  const ProgramResult result = RunProgram({"replay", "-m", kDemoModel, log}, options);
  ExpectError(result, 1, HasSubstr("2 lines are no record"));
  EXPECT_THAT(ReadFile(out), HasSubstr(absl::StrCat(":", (257 << 20) + 2, ": the record is none")));
}

// As Ctrl-C ends other programs: only that tells a shell to end its loop.
TEST(AnswerLogTest, AnInterruptedReplayEndsByTheSignal) {
  const std::string log = ScratchPath("answers.jsonl"), fifo = ScratchPath("log.fifo");
  {
    ServerProcess server({"-m", kDemoModel, "-t", "1", "--answer-log", log});
    Complete(server, "ROMEO:");
    server.Signal(SIGTERM);
    EXPECT_EQ(server.Wait(), 0);
  }
  const std::string out = ScratchPath("out");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  WriteFile(out, "");
  ProgramOptions options{.output_path = out};
  options.while_running = [&](pid_t pid) {
    std::ofstream writer(fifo);
    writer << "{}\n" << std::flush;
    EXPECT_TRUE(WaitUntil([&] { return !ReadFile(out).empty(); }));
    kill(pid, SIGINT);
    writer << ReadFile(log);
  };
  ExpectError(RunProgram({"replay", "-m", kDemoModel, "-t", "1", fifo}, options), 128 + SIGINT,
              HasSubstr(":2: interrupted"));
  EXPECT_THAT(ReadFile(out), HasSubstr(":1: the record is none"));
}

TEST(AnswerLogTest, NothingIsAppendedToAModel) {
  const std::string model = ScratchPath("copy.gguf"), bytes = ReadFile(kDemoModel);
  WriteFile(model, bytes);
  ExpectError(RunProgram({"serve", "-m", model, "--port", "0", "--answer-log", model}), 1,
              HasSubstr("is no log of answers, and nothing is appended to it: it is a model file"));
  EXPECT_EQ(ReadFile(model), bytes);
}

}  // namespace
}  // namespace inlay
