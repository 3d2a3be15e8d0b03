// inlay bench: its figures hang together, and every format tells them.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/tools/program.h"
#include "tests/wait_until.h"
#include "tools/bench_results.h"
#include "tools/process_memory.h"

namespace inlay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A run of a second or two on the demo model.
ProgramResult RunBench(std::vector<std::string> more) {
  std::vector<std::string> arguments = {"bench", "-p", "8", "-n", "4", "-r", "3"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return RunProgram(arguments);
}

TEST(Bench, MeasuresEachDepthBatchAndNumberOfThreads) {
  const auto rows = RunBench({"-t", "1,2", "-d", "0,5", "-b", "1,3", "-o", "json"}).Json();
  std::vector<std::string> tests;
  for (const auto& row : rows) {
    tests.push_back(row["test"].get<std::string>() + " t" + row["threads"].dump() + " d" +
                    row["depth"].dump() + " b" + row["batch"].dump());
    EXPECT_EQ(row["model"], "bard");
    EXPECT_EQ(row["types"], "F16");
    EXPECT_EQ(row["peak"], "f32");
    EXPECT_EQ(row["parameters"], 6720960);
    ASSERT_EQ(row["seconds"].size(), 3);
    const double tokens = row["tokens"].get<double>() * row["batch"].get<double>();
    std::vector<double> seconds = row["seconds"];
    std::sort(seconds.begin(), seconds.end());
    const double rate = row["tokens_per_second"];
    EXPECT_DOUBLE_EQ(rate, tokens / seconds[1]);
    // At least the weights are read, for prefill once and for decode once a token.
    const double bytes = row["bytes_per_second"];
    EXPECT_GE(bytes * seconds[1], 0.5 * row["file_bytes"].get<double>());
    EXPECT_DOUBLE_EQ(row["percent_of_read_bandwidth"],
                     100 * bytes / row["limit_bytes_per_second"].get<double>());
    EXPECT_DOUBLE_EQ(row["percent_of_peak"], 100 * row["ops_per_second"].get<double>() /
                                                 row["limit_ops_per_second"].get<double>());
    const double load = row["load_seconds"];
    EXPECT_GT(load, 0);
    EXPECT_GT(row["first_token_seconds"], load);
  }
  EXPECT_THAT(tests, ElementsAre("pp t1 d0 b1", "tg t1 d0 b1", "tg t1 d0 b3",  //
                                 "pp t1 d5 b1", "tg t1 d5 b1", "tg t1 d5 b3",  //
                                 "pp t2 d0 b1", "tg t2 d0 b1", "tg t2 d0 b3",  //
                                 "pp t2 d5 b1", "tg t2 d5 b1", "tg t2 d5 b3"));
}

// As Ctrl-C ends other programs: only that tells a shell to end its loop.
TEST(Bench, EndsByAnInterrupt) {
  const auto interrupt = [](pid_t pid) {
    EXPECT_TRUE(WaitUntil([&] { return ThreadsOf(pid) != 1; })) << "it measures";
    kill(pid, SIGINT);
  };
  ExpectError(RunProgram({"bench", "-t", "2", "-p", "0", "-n", "100000", "-r", "1000"},
                         {.while_running = interrupt}),
              128 + SIGINT, HasSubstr("interrupted before the end of the benchmark"));
}

// Conversations that are decoded together share nothing that they read.
TEST(Bench, EachConversationOfABatchHasMemoryOfItsOwn) {
  const auto peak = [](const char* batch) -> double {
    return RunProgram({"bench", "-p", "0", "-n", "1", "-r", "1", "-t", "1", "-d", "700", "-b",
                       batch, "-o", "json"})
        .Json()[0]["peak_memory_bytes"];
  };
  // 192 MB more; 64 forks would take 53, for the blocks that they write.
  EXPECT_GT(peak("65") - peak("1"), 100e6);
}

// A packed file repeats an embedding that is the output too, and holds the tokenizer as a tensor.
TEST(Bench, CountsEachParameterOnce) {
  const auto described = [](const std::string& model) {
    const auto row =
        RunProgram({"bench", model, "-p", "1", "-n", "0", "-r", "1", "-t", "1", "-o", "json"})
            .Json()[0];
    return row["parameters"].dump() + " of " + row["types"].get<std::string>();
  };
  const auto packed = [](const std::string& model) {
    const std::string path = ScratchPath("counted.packed");
    EXPECT_EQ(RunProgram({"pack", model, path, "--force"}).status, 0);
    return path;
  };
  EXPECT_EQ(described(packed(kDemoModel)), described(kDemoModel));
  // The first's output is the embedding, the second's is not.
  for (const char* config : {"test-gemma3", "test-granite"}) {
    const std::string path = ScratchPath("counted.gguf");
    ASSERT_EQ(RunProgram({"synth", config, "--type", "Q8_0", "-o", path, "--force"}).status, 0);
    EXPECT_EQ(described(packed(path)), described(path)) << config;
  }
}

TEST(Bench, WritesEveryFormat) {
  EXPECT_THAT(RunBench({"-b", "2"}).out,
              testing::AllOf(HasSubstr("| bard | F16 | 13.5 | 6.7 |"), HasSubstr("| pp8 |"),
                             HasSubstr("| tg4 x 2 |"), HasSubstr("peak memory, MB")));
  const std::string csv = RunBench({"-o", "csv"}).out;
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3);
  EXPECT_THAT(csv, testing::StartsWith("model,types,file_bytes,"));
  const std::string lines =
      RunProgram({"bench", "-p", "8", "-n", "0", "-r", "1", "-o", "jsonl"}).out;
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1);
  EXPECT_EQ(nlohmann::json::parse(lines)["test"], "pp");
}

TEST(Bench, RefusesWhatItCannotRun) {
  ExpectError(RunProgram({"bench", "-p", "0", "-n", "0"}), 2,
              HasSubstr("-p 0 and -n 0 together leave nothing to measure"));
  ExpectError(RunBench({"-t", "1,0"}), 2, HasSubstr("'0' is not a whole number from 1 to"));
  ExpectError(RunBench({"-b", "513"}), 2, HasSubstr("from 1 to 512"));
  ExpectError(RunBench({"-m", "no/such.gguf"}), 1, HasSubstr("no/such.gguf"));
}

// llama-bench's -b is something else.
TEST(Bench, NotesThatManyConversationsAreMeant) {
  const auto note = [](const char* batches) {
    return RunProgram({"bench", "-p", "1", "-n", "0", "-r", "1", "-t", "1", "-b", batches}).err;
  };
  EXPECT_THAT(note("128,512"), HasSubstr("inlay: -b 128 decodes 128 conversations at once; "));
  EXPECT_THAT(note("1,512"), testing::Not(HasSubstr("conversations")));
  EXPECT_THAT(note("64"), testing::Not(HasSubstr("conversations")));
}

// What was measured before an error is shown: 512 conversations do not fit.
TEST(Bench, ShowsWhatItHasWhereItFails) {
  const ProgramResult result =
      RunProgram({"bench", "-p", "0", "-n", "1", "-r", "1", "-t", "1", "-d", "700", "-b", "1,512"},
                 {.address_space = size_t{512} << 20});
  ExpectError(result, 1, HasSubstr("memory"));
  EXPECT_THAT(result.out,
              testing::AllOf(HasSubstr("| tg1 @ d700 |"), testing::Not(HasSubstr("x 512"))));
  EXPECT_EQ(RunBench({"-m", "no/such.gguf"}).out, "");
}

TEST(BenchRow, TellsMedianAndDeviation) {
  BenchRow row;
  row.tokens = 6;
  row.seconds = {3, 1, 2};  // rates 2, 6, 3
  EXPECT_EQ(row.Seconds(), 2);
  EXPECT_EQ(row.Rate(), 3);
  EXPECT_NEAR(row.Deviation(), 2.0816659994661326, 1e-12);
  row.seconds = {3, 1, 2, 6};
  EXPECT_EQ(row.Seconds(), 2.5);
}

TEST(PeakMemory, CountsFromTheReset) {
  if (!ResetPeakMemory()) GTEST_SKIP() << "the system keeps no peak that can be reset";
  const uint64_t before = *PeakMemory();
  constexpr size_t kBytes = size_t{64} << 20;
  { std::vector<char> touched(kBytes, 1); }
  EXPECT_GE(*PeakMemory(), before + kBytes / 2);
  ASSERT_TRUE(ResetPeakMemory());
  EXPECT_LT(*PeakMemory(), before + kBytes / 2);
}

}  // namespace
}  // namespace inlay
