// inlay batch as processes: its results are those of a server, whatever kills it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "tests/gemma_like/embedding_file.h"
#include "tests/serve/http/raw_client.h"
#include "tests/tools/program.h"
#include "tests/tools/server_process.h"
#include "tests/wait_until.h"

namespace inlay {
namespace {

using serve::RawClient;
using serve::RawReply;
using ::testing::HasSubstr;
using OrderedJson = nlohmann::ordered_json;

constexpr size_t kRequests = 24;

// Requests of all protocols, of which some fail. Their seeds are given, since a server draws
// others.
std::vector<OrderedJson> Requests() {
  std::vector<OrderedJson> requests;
  for (size_t i = 0; i < kRequests; ++i) {
    const std::string text = absl::StrCat("To be, or not to be, that is the question ", i);
    const OrderedJson chat = {{"messages", {{{"role", "user"}, {"content", text}}}},
                              {"max_tokens", 5 + 3 * i},
                              {"seed", i}};
    OrderedJson request = {{"custom_id", absl::StrCat("request-", i)}, {"method", "POST"}};
    switch (i % 5) {
      case 0:
        request["url"] = "/v1/chat/completions";
        request["body"] = chat;
        if (i == 5) request["body"]["n"] = 3;
        if (i == 10) request["body"]["logprobs"] = true;
        if (i == 15) request["body"]["nonsense"] = 1;
        break;
      case 1:
        request["url"] = "/v1/completions";
        request["body"] = {{"prompt", {text, "ROMEO:"}}, {"max_tokens", 20}, {"seed", i}};
        break;
      case 2:
        request["url"] = "/v1/responses";
        request["body"] = {
            {"input", text}, {"max_output_tokens", 20}, {"seed", i}, {"store", false}};
        break;
      case 3:
        request["url"] = "/v1/messages";
        request["body"] = chat;
        break;
      default:
        request["url"] = "/v1/completions";
        request["body"] = {{"prompt", text}, {"max_tokens", "many"}};  // no number
    }
    requests.push_back(request);
  }
  return requests;
}

// The same, of which one of the first takes long.
std::vector<OrderedJson> RequestsWithLongAnswers(size_t answers) {
  std::vector<OrderedJson> requests = Requests();
  requests[1]["body"]["prompt"] = std::vector<std::string>(answers, "ROMEO:");
  requests[1]["body"]["max_tokens"] = 2000;
  requests[1]["body"]["ignore_eos"] = true;
  return requests;
}

constexpr size_t kFailed = 5;  // of them: 4, 9, 14 and 19, by their max_tokens, and 15

std::string Lines(const std::vector<OrderedJson>& requests) {
  std::string lines;
  for (const OrderedJson& request : requests) absl::StrAppend(&lines, request.dump(), "\n");
  return lines;
}

// What the server makes random or timed, and what it reuses of earlier requests.
void Normalize(OrderedJson& json) {
  if (json.is_array()) {
    for (OrderedJson& item : json) Normalize(item);
  }
  if (!json.is_object()) return;
  for (auto& [key, value] : json.items()) {
    if (key == "id" && value.is_string()) value = "an id";
    if (key == "created" || key == "created_at") value = "a time";
    if (key == "cached_tokens" || key == "cache_read_input_tokens") value = "reused";
    if (key == "input_tokens") value = "not reused";  // Anthropic's, without those reused
    Normalize(value);
  }
}

// A server's reply to the same request.
RawReply Post(uint16_t port, const OrderedJson& request) {
  const std::string body = request["body"].dump();
  RawClient client(port);
  EXPECT_TRUE(client.Send(absl::StrCat(
      "POST ", request["url"].get<std::string>(),
      " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ",
      body.size(), "\r\n\r\n", body)));
  return client.Read();
}

class BatchTest : public testing::Test {
 protected:
  BatchTest() { WriteFile(input_, Lines(Requests())); }

  std::vector<std::string> Arguments(const std::string& out,
                                     const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = {"batch",  "-m",   kDemoModel, "-t", "1",      "--chat-template",
                                    "chatml", input_, "-o",       out,  "--time", "1000"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  ProgramResult Run(const std::string& out, const std::vector<std::string>& more = {},
                    const std::map<std::string, std::string>& env = {}) const {
    return RunProgram(Arguments(out, more), {.env = env});
  }
  // The job in one go.
  std::string Whole() const {
    const std::string out = ScratchPath("whole");
    const ProgramResult result = Run(out);
    EXPECT_EQ(result.status, 3) << result.err;
    EXPECT_EQ(result.err,
              absl::StrCat("inlay: 5 of 24 requests failed; ", out, " has all results\n"));
    return ReadFile(out);
  }

  const std::string input_ = ScratchPath("requests.jsonl");
};

TEST_F(BatchTest, ResultsAreAServersReplies) {
  const std::string whole = Whole();
  const std::vector<std::string> lines = absl::StrSplit(whole, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), kRequests);
  ServerProcess server({"-m", kDemoModel, "-t", "2", "--chat-template", "chatml"});
  const std::vector<OrderedJson> requests = Requests();
  size_t failed = 0;
  for (size_t i = 0; i < kRequests; ++i) {
    const OrderedJson result = OrderedJson::parse(lines[i]);
    EXPECT_EQ(result["custom_id"], requests[i]["custom_id"]);
    const RawReply reply = Post(server.port(), requests[i]);
    EXPECT_EQ(result["response"]["status_code"], reply.status);
    failed += reply.status != 200;
    OrderedJson expected = OrderedJson::parse(reply.body), found = result["response"]["body"];
    // Members of the same order and spelling: the bytes are the same but for what is replaced.
    EXPECT_THAT(lines[i], HasSubstr(absl::StrCat("\"body\":", found.dump(), "}")));
    Normalize(expected);
    Normalize(found);
    EXPECT_EQ(found.dump(), expected.dump());
  }
  EXPECT_EQ(failed, kFailed);
}

TEST_F(BatchTest, EmbeddingsAreAServersToo) {
  const std::string model = ScratchPath("embedding.gguf"), out = ScratchPath("out");
  WriteEmbeddingFile({.dense = {2, 3}}, model);
  std::vector<OrderedJson> requests;
  for (int i = 0; i < 10; ++i) {
    requests.push_back({{"custom_id", absl::StrCat(i)},
                        {"method", "POST"},
                        {"url", "/v1/embeddings"},
                        {"body", {{"input", {absl::StrCat("text ", i), "To be"}}}}});
  }
  WriteFile(input_, Lines(requests));
  const ProgramResult result = RunProgram({"batch", "-m", model, input_, "-o", out});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, absl::StrCat("inlay: ", out, " has the 10 results\n"));
  ServerProcess server({"-m", model});
  const std::vector<std::string> lines = absl::StrSplit(ReadFile(out), '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), requests.size());
  for (size_t i = 0; i < requests.size(); ++i)
    EXPECT_THAT(lines[i], HasSubstr(Post(server.port(), requests[i]).body));
}

TEST_F(BatchTest, TheSameBytesHoweverManyAtATime) {
  const std::string whole = Whole(), out = ScratchPath("out");
  for (const char* parallel : {"1", "3"}) {
    EXPECT_EQ(Run(out, {"--parallel", parallel, "--restart"}).status, 3);
    EXPECT_EQ(ReadFile(out), whole) << parallel;
  }
}

TEST_F(BatchTest, TheSameBytesWithDrafts) {
  const std::string whole = Whole(), out = ScratchPath("out");
  for (const std::vector<std::string>& drafts :
       {std::vector<std::string>{"--draft", "4"}, {"--draft-model", kDemoModel}}) {
    std::vector<std::string> flags = {"--parallel", "2", "--restart"};
    flags.insert(flags.end(), drafts.begin(), drafts.end());
    EXPECT_EQ(Run(out, flags).status, 3);
    EXPECT_EQ(ReadFile(out), whole) << drafts[0];
  }
}

bool HasEnded(pid_t pid) {
  siginfo_t info = {};
  waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT);
  return info.si_pid != 0;
}

// The lines of the journal at `path`, of which the first is its header; 0 where there is none.
size_t LinesOf(const std::string& path) {
  std::ifstream journal(path);
  return static_cast<size_t>(std::count(std::istreambuf_iterator<char>(journal), {}, '\n'));
}

struct Middle {
  std::function<void()> before;  // called before each run
  std::function<void(pid_t)> act;
};

// Runs a job of the requests in `input` and acts on its process while it is stopped between its
// first result, which is in the journal `part`, and the second one, which takes long. A job that
// gets further before it is stopped is run again, with a second result that takes longer.
ProgramResult RunAndAct(const std::vector<std::string>& command, const std::string& input,
                        const std::string& part, const Middle& middle) {
  for (size_t answers = 2; answers <= 32; answers *= 2) {
    WriteFile(input, Lines(RequestsWithLongAnswers(answers)));
    middle.before();
    bool in_the_middle = false;
    const ProgramResult result =
        RunProgram(command, {.while_running = [&](pid_t pid) {
                     EXPECT_TRUE(WaitUntil([&] { return HasEnded(pid) || LinesOf(part) > 1; }));
                     kill(pid, SIGSTOP);
                     siginfo_t info = {};
                     waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED | WEXITED | WNOWAIT);
                     in_the_middle = LinesOf(part) == 2;
                     if (in_the_middle) middle.act(pid);
                     kill(pid, SIGCONT);
                   }});
    if (in_the_middle) return result;
  }
  ADD_FAILURE() << "the job was done each time";
  return {};
}

// INLAY_BATCH_KILLS: how often, in place of 12.
TEST_F(BatchTest, KilledAtAnyMomentItGoesOnWithTheSameBytes) {
  const std::string whole = Whole(), out = ScratchPath("out"), part = out + ".part";
  const char* const asked = std::getenv("INLAY_BATCH_KILLS");
  const int most = asked == nullptr ? 12 : std::atoi(asked);
  std::mt19937 random(1);
  int kills = 0, jobs = 0;
  std::map<size_t, int> after;  // so many lines of the journal, so many kills
  while (kills < most) {
    // After a time that is mostly that of the start, or when the journal has grown by some lines:
    // in the end by all results and its end, while the output is written.
    const auto wait = [&](pid_t pid) {
      if (random() % 3 == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(random() % 150));
        return;
      }
      const size_t wanted = std::min(LinesOf(part) + 1 + random() % 6, kRequests + 2);
      EXPECT_TRUE(WaitUntil([&] { return HasEnded(pid) || LinesOf(part) >= wanted; }));
    };
    const ProgramResult result = RunProgram(Arguments(out), {.while_running = [&](pid_t pid) {
                                              if (kills == most) return;
                                              wait(pid);
                                              kill(pid, SIGKILL);
                                            }});
    if (result.status == 128 + SIGKILL) {
      ++kills;
      ++after[LinesOf(part)];
    } else {
      EXPECT_EQ(result.status, 3) << result.err;
    }
    if (result.status != 128 + SIGKILL || kills == most) {
      EXPECT_EQ(Run(out).status, 3) << "it goes on, or is done already";
      ++jobs;
      EXPECT_EQ(ReadFile(out), whole);
      EXPECT_FALSE(std::filesystem::exists(part));
      EXPECT_EQ(unlink(out.c_str()), 0);
    }
  }
  std::printf("%d kills of %d jobs; lines in the journal, and kills:", kills, jobs);
  for (const auto& [lines, count] : after) std::printf(" %zu: %d", lines, count);
  std::printf("\n");
}

TEST_F(BatchTest, ASignalKeepsWhatIsDone) {
  const std::string out = ScratchPath("out"), part = out + ".part";
  // The output of another job, which --restart replaces in the end.
  const std::string old = R"({"id":"batch_req_1"})";
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const ProgramResult stopped =
        RunAndAct(Arguments(out, {"--restart", "--parallel", "1"}), input_, part,
                  {.before =
                       [&] {
                         unlink(part.c_str());
                         WriteFile(out, old);
                       },
                   .act = [&](pid_t pid) { kill(pid, signal); }});
    // Ctrl-C ends it as it ends other programs, so that a loop of the shell ends, too.
    ExpectError(stopped, signal == SIGINT ? 128 + SIGINT : 1,
                HasSubstr(absl::StrCat("the results so far are kept in ", part,
                                       ", and the same command goes on with the rest")));
    EXPECT_EQ(ReadFile(out), old);
  }
  WriteFile(input_, Lines(Requests()));
  EXPECT_EQ(Run(out, {"--restart"}).status, 3);
  EXPECT_EQ(ReadFile(out), Whole());
}

// Before there are results, as while a model is pulled and loaded, a signal does what it usually
// does.
TEST_F(BatchTest, ASignalBeforeTheModelIsLoadedEndsIt) {
  const std::string chat_template = ScratchPath("template");
  ASSERT_EQ(mkfifo(chat_template.c_str(), 0600), 0);
  const ProgramResult ended = RunProgram(
      {"batch", "-m", kDemoModel, "--chat-template", chat_template, input_, "-o",
       ScratchPath("out")},
      {.while_running = [&](pid_t pid) {
        const int end = open(chat_template.c_str(), O_WRONLY);  // once the program reads there
        kill(pid, SIGTERM);
        close(end);
      }});
  EXPECT_EQ(ended.status, 128 + SIGTERM) << ended.err;
  unlink(chat_template.c_str());
}

TEST_F(BatchTest, ShardsOfTheEnvironmentJoinToTheSameBytes) {
  const std::string whole = Whole(), out = ScratchPath("out");
  const std::vector<std::vector<std::map<std::string, std::string>>> launches = {
      {{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}},
       {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}}},
      {{{"SLURM_ARRAY_TASK_ID", "1"},
        {"SLURM_ARRAY_TASK_MIN", "1"},
        {"SLURM_ARRAY_TASK_MAX", "2"},
        {"SLURM_ARRAY_TASK_COUNT", "2"}},
       {{"SLURM_ARRAY_TASK_ID", "2"},
        {"SLURM_ARRAY_TASK_MIN", "1"},
        {"SLURM_ARRAY_TASK_MAX", "2"},
        {"SLURM_ARRAY_TASK_COUNT", "2"}}}};
  for (const auto& environments : launches) {
    const ProgramResult first = Run(out, {}, environments[0]);
    EXPECT_EQ(first.status, 0) << "failed requests are told when all is done: " << first.err;
    EXPECT_EQ(first.err,
              absl::StrCat("inlay: shard 0/2 is done, 1 is not yet (1/2); the last one writes ",
                           out, "\n"));
    EXPECT_TRUE(std::filesystem::exists(out + ".part.0-of-2"));
    EXPECT_EQ(Run(out, {}, environments[0]).err, first.err) << "once more";
    EXPECT_EQ(Run(out, {}, environments[1]).status, 3);
    EXPECT_EQ(ReadFile(out), whole);
    ASSERT_EQ(unlink(out.c_str()), 0);
  }
  EXPECT_EQ(Run(out, {"--shard", "1/2"}, launches[0][0]).status, 0) << "the flag counts";
  EXPECT_TRUE(std::filesystem::exists(out + ".part.1-of-2"));
}

TEST_F(BatchTest, WhatCannotBeDoneIsRefused) {
  const std::string out = ScratchPath("out");
  ExpectError(Run(input_), 2, HasSubstr("is the file of the requests"));
  ExpectError(Run(out, {"--shard", "2/2"}), 2, HasSubstr("--shard is '2/2', not I/N"));
  ExpectError(Run(out, {"--sandbox"}), 2, HasSubstr("--sandbox lets no file be written"));
  ExpectError(Run(out, {}, {{"SLURM_ARRAY_TASK_ID", "3"}}), 1, HasSubstr("--shard I/N"));
  ExpectError(Run(kDemoModel), 1, HasSubstr("is a model file"));
  ExpectError(RunProgram({"batch", input_}), 2, HasSubstr("--output is required"));
  ExpectError(RunProgram({"batch", "-", "-o", out}), 2, HasSubstr("and not standard input"));
  ExpectError(RunProgram({"batch", input_, "-o", "-"}), 2, HasSubstr("and not standard output"));
  ExpectError(
      RunProgram({"batch", "-m", "no/such/model", input_, "-o", out + "/none/results"}), 1,
      HasSubstr(absl::StrCat("nothing can be written into ", out, "/none, the folder of ")));
  ExpectError(Run(out, {"-c", "200", "--cache-limit", "1"}), 1,
              HasSubstr("one conversation needs at least"));
  ExpectError(
      Run(out, {"-c", "100000", "--cache-limit", "16"}), 1,
      testing::MatchesRegex(".*: memory suffices for conversations of [0-9]+ tokens, not of "
                            "100000: give -c [0-9]+ or less, .*\n"));
  WriteFile(out, "mine\n");
  ExpectError(Run(out), 1, HasSubstr("exists and is not the output of a batch job"));
  ExpectError(Run(out, {"--restart"}), 1, HasSubstr("it is never written over"));
  EXPECT_EQ(ReadFile(out), "mine\n");
  EXPECT_THAT(RunProgram({"batch", "--help"}).out, testing::Not(HasSubstr("--sandbox")));
  const std::string twice = ScratchPath("twice");
  WriteFile(twice, Lines({Requests()[0], Requests()[0]}));
  ExpectError(RunProgram({"batch", "-m", kDemoModel, twice, "-o", ScratchPath("o")}), 1,
              HasSubstr("twice:2: the custom_id 'request-0' is also that of line 1"));
}

TEST_F(BatchTest, AnotherModelOrContextIsRefused) {
  const std::string out = ScratchPath("out");
  ASSERT_EQ(Run(out, {"--shard", "0/2"}).status, 0);
  ExpectError(
      Run(out, {"--shard", "0/2", "--alias", "other"}), 1,
      HasSubstr("its model's name is \"bard\" and not \"other\"; with --alias bard in every"));
  ExpectError(Run(out, {"--shard", "0/2", "-c", "100"}), 1, HasSubstr("its context is "));
  ExpectError(
      Run(out, {"--shard", "0/2", "--cache-type", "bf16"}), 1,
      HasSubstr("its type of stored rows is \"f16\" and not \"bf16\"; with --cache-type f16"));
  ExpectError(Run(out, {"--shard", "0/2", "--temp", "0.5"}), 1,
              HasSubstr(R"(its set of defaults is "{}" and not )"));
  ExpectError(Run(out, {"--shard", "1/2", "-c", "100"}), 1, HasSubstr("0-of-2 has results of"));
  ExpectError(Run(out), 1, HasSubstr("in 2 shards, not in 1"));
  const std::string chat_template = ScratchPath("template");
  WriteFile(chat_template, "{{ messages[-1].content }}");
  ExpectError(RunProgram({"batch", "-m", kDemoModel, input_, "-o", out, "--time", "1000", "--shard",
                          "0/2", "--chat-template", chat_template}),
              1, HasSubstr("its chat template is \"chatml\" and not \"xxh64 "));
  EXPECT_EQ(Run(out, {"--shard", "0/2"}).status, 0);
}

// As a model that is copied over another one, or whose disk fails.
TEST_F(BatchTest, AModelThatCannotBeReadAnyMoreFailsNoRequest) {
  const std::string model = ScratchPath("model.gguf"), bytes = ReadFile(kDemoModel);
  const std::string out = ScratchPath("out"), part = out + ".part";
  const std::vector<std::string> command = {
      "batch",           "-m",     model, "-t", "1", "-o", out, "--time", "1", "--parallel", "1",
      "--chat-template", "chatml", input_};
  const ProgramResult ended =
      RunAndAct(command, input_, part,
                {.before =
                     [&] {
                       unlink(out.c_str());
                       WriteFile(model, bytes);
                     },
                 .act = [&](pid_t) { std::filesystem::resize_file(model, bytes.size() / 2); }});
  EXPECT_EQ(ended.status, 1) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("model.gguf has become shorter"));
  EXPECT_THAT(ended.err, HasSubstr(absl::StrCat("; the results so far are kept in ", part,
                                                ", and the same command goes on with the rest")));
  EXPECT_THAT(ReadFile(part), testing::Not(HasSubstr("\"status_code\":503")));
  EXPECT_FALSE(std::filesystem::exists(out));
  WriteFile(model, bytes);
  const ProgramResult done = RunProgram(command);
  EXPECT_EQ(done.status, 3) << done.err;
  EXPECT_THAT(done.err, HasSubstr(" of 24 results "));
  EXPECT_THAT(done.err, HasSubstr("inlay: 5 of 24 requests failed"));
  const std::string first = ReadFile(out);
  EXPECT_EQ(unlink(out.c_str()), 0);
  EXPECT_EQ(RunProgram(command).status, 3);
  EXPECT_EQ(ReadFile(out), first);
}

// Without --time a job keeps the time that its file of requests had when it began.
TEST_F(BatchTest, ACopiedFileOfRequestsGoesOn) {
  const std::string whole = Whole(), out = ScratchPath("out"), copy = ScratchPath("copy.jsonl");
  WriteFile(copy, ReadFile(input_));
  const timespec then[2] = {{.tv_sec = 1000, .tv_nsec = 0}, {.tv_sec = 1000, .tv_nsec = 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, input_.c_str(), then, 0), 0);
  const auto run = [&](const std::string& input, const char* shard) {
    return RunProgram({"batch", "-m", kDemoModel, "-t", "1", "--chat-template", "chatml", input,
                       "-o", out, "--shard", shard});
  };
  ASSERT_EQ(run(input_, "0/2").status, 0);
  const ProgramResult last = run(copy, "1/2");
  EXPECT_EQ(last.status, 3) << last.err;
  EXPECT_EQ(ReadFile(out), whole);
  const ProgramResult again = run(copy, "0/1");
  EXPECT_EQ(again.status, 3) << again.err;
  EXPECT_EQ(ReadFile(out), whole);
}

TEST_F(BatchTest, FailedRequestsAreTriedAgain) {
  const std::string whole = Whole(), out = ScratchPath("out");
  ASSERT_EQ(Run(out).status, 3);
  const ProgramResult again = Run(out, {"--retry-failed"});
  EXPECT_EQ(again.status, 3);
  EXPECT_EQ(again.err,
            absl::StrCat("inlay: 19 of 24 results are there already, in ", out,
                         ".part\ninlay: 5 of 24 requests failed; ", out, " has all results\n"));
  EXPECT_EQ(ReadFile(out), whole);
}

TEST_F(BatchTest, WhatTheModelCannotDoIsRefused) {
  const std::string out = ScratchPath("out"), embedding = ScratchPath("embedding.gguf");
  std::vector<OrderedJson> requests = {Requests()[0], Requests()[1]};
  requests[1]["url"] = "/v1/embeddings";
  WriteFile(input_, Lines(requests));
  ExpectError(Run(out), 1, HasSubstr(":2: /v1/embeddings needs a model that embeds texts"));
  WriteEmbeddingFile({.dense = {2, 3}}, embedding);
  ExpectError(RunProgram({"batch", "-m", embedding, input_, "-o", out}), 1,
              HasSubstr(":1: this asks for an answer, and the model embeds texts"));
  EXPECT_FALSE(std::filesystem::exists(out + ".part"));
}

// Requests are read when their turn comes, and results are not kept.
TEST_F(BatchTest, MemoryDoesNotGrowWithTheInput) {
  const auto peak = [&](size_t count, size_t empty_lines) {
    std::ofstream file(input_, std::ios::trunc);
    const std::string text(800, 'x');
    for (size_t i = 0; i < count; ++i) {
      // Refused, which takes no time.
      file << R"({"custom_id":")" << i << R"(","method":"POST","url":"/v1/completions",)"
           << R"("body":{"prompt":")" << text << R"(","max_tokens":"many"}})"
           << "\n";
      if (i == 0) file << std::string(empty_lines, '\n');
    }
    file.close();
    const std::string out = ScratchPath("many");
    const ProgramResult result = Run(out, {"--restart"});
    EXPECT_EQ(result.status, 3) << result.err;
    EXPECT_EQ(result.err, absl::StrCat("inlay: ", count, " of ", count, " requests failed; ", out,
                                       " has all results\n"));
    return result.peak_bytes;
  };
  const size_t few = peak(100, 0), many = peak(20'000, 0);
  EXPECT_LT(many, few + (size_t{6} << 20)) << "the input has 18 MB, the output 7 MB";
  EXPECT_LT(peak(100, size_t{200} << 20), few + (size_t{50} << 20)) << "200 MB of empty lines";
}

}  // namespace
}  // namespace inlay
