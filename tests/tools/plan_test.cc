// inlay plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/tools/program.h"
#include "tests/wait_until.h"

namespace inlay {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A machine that is not measured.
const std::vector<std::string> kFixed = {"plan", "--read-bandwidth", "40", "--ops", "1000"};

std::vector<std::string> With(std::vector<std::string> arguments,
                              const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

nlohmann::json PlanOf(const std::vector<std::string>& more) {
  const ProgramResult result = RunProgram(With(With(kFixed, more), {"-o", "json"}));
  EXPECT_EQ(result.status, 0) << result.err;
  return result.Json();
}

TEST(Plan, HasARowForEachDoublingAndTheNumberItself) {
  const auto plan = PlanOf({"--machines", "6", "--network", "10gbe"});
  ASSERT_EQ(plan["networks"].size(), 1u);
  EXPECT_EQ(plan["networks"][0]["name"], "10gbe");
  for (const char* what : {"decode", "prefill"}) {
    std::vector<int> machines;
    for (const auto& group : plan["networks"][0][what]["groups"])
      machines.push_back(group["machines"]);
    EXPECT_THAT(machines, testing::ElementsAre(1, 2, 4, 6));
  }
  EXPECT_EQ(plan["config"], "bard");
  EXPECT_EQ(plan["groups"][0]["gathers"], 0);
  EXPECT_GT(plan["groups"][1]["gathers"], 0);
  EXPECT_LT(plan["groups"][3]["weight_bytes"], plan["groups"][0]["weight_bytes"]);
}

// What is calculated may then be of two files.
TEST(Plan, AFileThatChangesMeanwhileIsAnError) {
  const std::string model = ScratchPath("model.gguf");
  WriteFile(model, ReadFile(kDemoModel));
  // While it measures the machine it has threads, and has opened the file.
  bool measures = false;
  const auto change = [&](pid_t pid) {
    EXPECT_TRUE(WaitUntil([&] { return ThreadsOf(pid) != 1; }));
    kill(pid, SIGSTOP);
    siginfo_t info = {};
    waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED | WEXITED | WNOWAIT);
    measures = ThreadsOf(pid) > 1;
    const auto before = std::filesystem::last_write_time(model);
    std::filesystem::last_write_time(model, before + std::chrono::seconds(1));
    kill(pid, SIGCONT);
  };
  ProgramResult result;
  for (int i = 0; i < 20 && !measures; ++i)  // again where it was done with that before it stopped
    result = RunProgram({"plan", "-t", "2", "-m", model}, {.while_running = change});
  ASSERT_TRUE(measures);
  ExpectError(result, 1, HasSubstr("model.gguf has changed since it was opened"));
}

TEST(Plan, ComputesWithTheMachineThatIsGiven) {
  const auto one = PlanOf({"--machines", "1", "--decode-share", "50", "--prefill-share", "25"});
  EXPECT_EQ(one["machine"]["read_bytes_per_second"], 40e9);
  EXPECT_EQ(one["machine"]["ops_per_second"], 1e12);
  const auto& decode = one["networks"][0]["decode"]["groups"][0];
  EXPECT_GE(decode["reading_seconds"], 0.9 * one["groups"][0]["weight_bytes"].get<double>() / 20e9);
  const auto half = PlanOf({"--machines", "1", "--decode-share", "100", "--prefill-share", "50"});
  const auto& faster = half["networks"][0]["decode"]["groups"][0];
  EXPECT_NEAR(faster["reading_seconds"].get<double>(), decode["reading_seconds"].get<double>() / 2,
              1e-12);
  EXPECT_NEAR(faster["computing_seconds"].get<double>(),
              decode["computing_seconds"].get<double>() / 2, 1e-12);
}

TEST(Plan, KnowsThreeNetworksAndTakesOthers) {
  EXPECT_EQ(PlanOf({"--machines", "2"})["networks"].size(), 3u);
  const auto own = PlanOf({"--machines", "2", "--network", "1ms,1GB/s", "--network", "2ms,1GB/s"});
  ASSERT_EQ(own["networks"].size(), 2u);
  const auto latency = [&](size_t network) {
    return own["networks"][network]["decode"]["groups"][1]["latency_seconds"].get<double>();
  };
  EXPECT_DOUBLE_EQ(latency(1), 2 * latency(0));
  // All gathers but the one to the first rank, three more, and that one: each a message of 1 ms.
  EXPECT_DOUBLE_EQ(latency(0), 1e-3 * (own["groups"][1]["gathers"].get<double>() + 3));
}

TEST(Plan, WritesATableAndASentence) {
  const ProgramResult result = RunProgram(With(kFixed, {"--network", "1ms,1GB/s"}));
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("calculated, not measured"), HasSubstr("reads 40.0 GB/s"),
                                HasSubstr("network 1ms,1GB/s: 1e+03 us, 1 GB/s"),
                                HasSubstr("decode of 1 conversation at 0 tokens"),
                                HasSubstr("memory with 1 conversation of 0 tokens, and"),
                                HasSubstr("Decode is fastest with 1 machine; from 1 to 2"),
                                HasSubstr("are the latency of collectives"),
                                HasSubstr("prefill of 512 tokens")));
  EXPECT_THAT(RunProgram(With(kFixed, {"-p", "0"})).out, Not(HasSubstr("refill of")));
}

// Nothing of networks, gathers and the fastest number of machines.
TEST(Plan, OfOneMachineIsAboutThatMachine) {
  const ProgramResult result = RunProgram(With(kFixed, {"--machines", "1"}));
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("the machine reads 40.0 GB/s"),
                    HasSubstr("\nmemory with 1 conversation of 0 tokens: "),
                    HasSubstr("\ndecode of 1 conversation at 0 tokens: "),
                    HasSubstr("\nprefill of 512 tokens: "), Not(HasSubstr("network")),
                    Not(HasSubstr("gather")), Not(HasSubstr("fastest")), Not(HasSubstr("nan"))));
  const ProgramResult longer =
      RunProgram(With(kFixed, {"--machines", "1", "-b", "2", "-d", "1000", "-p", "0"}));
  EXPECT_THAT(longer.out, AllOf(HasSubstr("\nmemory with 2 conversations of 1000 tokens: "),
                                Not(HasSubstr("prefill of"))));
}

TEST(Plan, MeasuresWhatIsNotGiven) {
  const auto plan =
      RunProgram({"plan", "--machines", "1", "-t", "1", "-o", "json"}).Json()["machine"];
  EXPECT_GT(plan["read_bytes_per_second"], 1e8);
  EXPECT_GT(plan["ops_per_second"], 1e8);
}

// The peaks are those of the instruction set in use, and so is the share that prefill reaches.
TEST(Plan, HasASmallShareOfThePeaksOfAmx) {
  const auto targets = RunProgram({"limits", "--no-measure", "-o", "json"}).Json()["targets"];
  const auto machine = [](const std::string& target, std::vector<std::string> more) {
    return RunProgram(With({"plan", "--config", "bard", "--machines", "1", "-t", "1", "-o", "json",
                            "--read-bandwidth", "40"},
                           more),
                      {.env = {{"INLAY_TARGET", target}}})
        .Json()["machine"];
  };
  for (const std::string target : targets["runnable"]) {
    SCOPED_TRACE(target);
    const bool amx = target.ends_with("_AMX");
    EXPECT_DOUBLE_EQ(machine(target, {})["prefill_share"], amx ? 0.08 : 0.6);
    EXPECT_DOUBLE_EQ(machine(target, {"--type", "BF16"})["prefill_share"], amx ? 0.2 : 0.6);
    EXPECT_DOUBLE_EQ(machine(target, {"--type", "F16"})["prefill_share"], 0.6);
    EXPECT_DOUBLE_EQ(machine(target, {"--prefill-share", "30"})["prefill_share"], 0.3);
    EXPECT_DOUBLE_EQ(machine(target, {"--ops", "1000"})["prefill_share"], 0.6);
  }
}

// As for the file that synth writes, without writing it.
TEST(Plan, NeedsNoFile) {
  const std::string path = ScratchPath("plan.gguf");
  ASSERT_EQ(RunProgram({"synth", "bard", "--type", "Q4_0", "-o", path}).status, 0);
  auto written = PlanOf({"-m", path}), unwritten = PlanOf({"--config", "bard", "--type", "Q4_0"});
  EXPECT_EQ(written, unwritten);
  EXPECT_NE(unwritten, PlanOf({"--config", "bard"}));
}

TEST(Plan, SaysWhatMakesNoSense) {
  const auto refused = [](const std::vector<std::string>& more, const std::string& sentence) {
    ExpectError(RunProgram(With(kFixed, more)), 2, HasSubstr(sentence));
  };
  refused({"--network", "carrier pigeons"}, "'carrier pigeons' is no network");
  refused({"--machines", "0"}, "from 1 to 256");
  refused({"--config", "none"}, "none");
  refused({"--config", "bard", "--type", "Q9"}, "Q9");
  refused({"--type", "Q8_0"}, "--config");
  refused({"--config", "bard", "-m", "models/bard.gguf"}, "--config");
  refused({"--config", "bard", "models/bard.gguf"}, "--config");
  refused({"--config", "bard", "--sandbox"}, "--sandbox");
  refused({"--decode-share", "101"}, "101");
  ExpectError(RunProgram(With(kFixed, {"-m", "no/such"})), 1, HasSubstr("no/such"));
}

}  // namespace
}  // namespace inlay
