// inlay perplexity on the text that the demo model has never seen.
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <string>
#include <vector>

#include "cache/cache_plan.h"
#include "configs/bard.h"
#include "gemma_like/perplexity.h"
#include "tests/tools/program.h"

namespace inlay {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kHeldOut[] = "tests/golden/demo/heldout.txt";

TEST(Perplexity, OfTheHeldOutTextIsThatOfTheReference) {
  const auto golden =
      nlohmann::json::parse(ReadFile("tests/golden/demo/bard.golden.json"))["perplexity_heldout"];
  const ProgramResult result =
      RunProgram({"perplexity", "-f", kHeldOut, "-c", "256", "-o", "json", "-t", "1"});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.err, IsEmpty());
  const auto json = result.Json();
  EXPECT_EQ(json["complete"], true);
  for (const char* key : {"ctx", "tokens", "chunks", "scored"}) EXPECT_EQ(json[key], golden[key]);
  const double expected = golden["perplexity"];
  EXPECT_NEAR(json["perplexity"], expected, expected * 1e-4);
  EXPECT_NEAR(json["mean_nll"], golden["mean_nll"].get<double>(), 1e-4);
  const std::vector<double> after_chunk = json["perplexity_after_chunk"];
  ASSERT_EQ(after_chunk.size(), 99u);
  for (size_t i = 0; i < after_chunk.size(); ++i) {
    const double wanted = golden["perplexity_after_chunk"][i];
    EXPECT_NEAR(after_chunk[i], wanted, wanted * 1e-3) << "chunk " << i + 1;
  }
}

// The first chunks of the text are enough here.
std::string Excerpt() {
  const std::string path = ScratchPath("excerpt");
  WriteFile(path, ReadFile(kHeldOut).substr(0, 4000));
  return path;
}

TEST(Perplexity, IsTheSameToTheLastBitAfterRewinding) {
  const std::string path = Excerpt();
  for (const char* chunk : {"64", "200", "256", "700"}) {
    auto straight = RunProgram({"perplexity", "-f", path, "-c", chunk, "-o", "json"}).Json();
    auto rewound =
        RunProgram({"perplexity", "-f", path, "-c", chunk, "-o", "json", "--rewind", "-t", "1"})
            .Json();
    EXPECT_GT(straight["chunks"], 1);
    EXPECT_EQ(straight, rewound) << chunk;
  }
  unlink(path.c_str());
}

TEST(Perplexity, PrintsARunningEstimate) {
  const std::string path = Excerpt();
  const ProgramResult result = RunProgram({"perplexity", "-f", path});
  const auto json =
      RunProgram({"perplexity", "-f", "-", "-o", "json"}, {.input = ReadFile(path)}).Json();
  char first[32];
  std::snprintf(first, sizeof(first), "[1]%.4f,[2]",
                json["perplexity_after_chunk"][0].get<double>());
  EXPECT_THAT(result.out, AllOf(HasSubstr(first), HasSubstr("\nperplexity "), HasSubstr("NLL"),
                                HasSubstr("chunks of 256")));
  unlink(path.c_str());
}

TEST(Perplexity, SaysWhatIsLeftOutAtTheEnd) {
  const std::string path = Excerpt();
  const auto json = RunProgram({"perplexity", "-f", path, "-o", "json"}).Json();
  const size_t left_out = json["tokens"].get<size_t>() % 256;
  ASSERT_GT(left_out, 1u);
  EXPECT_EQ(json["left_out"], left_out);
  EXPECT_THAT(RunProgram({"perplexity", "-f", path}).out,
              HasSubstr(" scored, " + std::to_string(left_out) + " tokens at the end left out)\n"));
  // What is not asked for is not left out.
  EXPECT_THAT(RunProgram({"perplexity", "-f", path, "--chunks", "1"}).out, HasSubstr(" scored)\n"));
  unlink(path.c_str());
}

TEST(Perplexity, StoresRowsAsAsked) {
  const std::string path = Excerpt();
  const auto perplexity = [&](const std::vector<std::string>& more) -> double {
    std::vector<std::string> arguments = {"perplexity", "-f", path, "-o", "json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProgram(arguments).Json()["perplexity"];
  };
  const double f32 = perplexity({"--cache-type", "f32"});
  for (const char* type : {"f16", "bf16", "q8"}) {
    const double narrow = perplexity({"--cache-type", type});
    EXPECT_NE(narrow, f32) << type;
    EXPECT_NEAR(narrow, f32, f32 * 2e-3) << type;
  }
  EXPECT_EQ(perplexity({}), perplexity({"--cache-type", "f16"}));
  unlink(path.c_str());
}

// Enough text for minutes, of which a few chunks are computed.
class InterruptedPerplexity : public testing::Test {
 protected:
  InterruptedPerplexity() {
    std::string text;
    for (int i = 0; i < 20; ++i) text += ReadFile(kHeldOut);
    WriteFile(path_, text);
  }

  const std::string path_ = ScratchPath("text"), out_ = ScratchPath("out");
};

TEST_F(InterruptedPerplexity, WritesTheJsonSoFar) {
  Terminal terminal({"perplexity", "-f", path_, "-o", "json"}, {{"TERM", "xterm"}}, out_);
  terminal.WaitFor("chunk");  // of the bar
  terminal.Type(kCtrlC);
  const ProgramResult result = terminal.Finish();
  EXPECT_EQ(result.status, 128 + SIGINT);
  EXPECT_THAT(result.out, HasSubstr("interrupted before the end of the text"));
  const auto json = nlohmann::json::parse(ReadFile(out_));
  EXPECT_EQ(json["complete"], false);
  const std::vector<double> after_chunk = json["perplexity_after_chunk"];
  ASSERT_GE(after_chunk.size(), 1u);
  EXPECT_EQ(json["chunks"], after_chunk.size());
  EXPECT_EQ(json["perplexity"], after_chunk.back());
  EXPECT_EQ(json["scored"], 127 * after_chunk.size());
}

TEST_F(InterruptedPerplexity, WritesTheSumSoFar) {
  Terminal terminal({"perplexity", "-f", path_}, {{"TERM", "xterm"}});
  terminal.WaitFor("chunk");
  terminal.Type(kCtrlC);
  terminal.WaitFor("nats (");
  const ProgramResult result = terminal.Finish();
  EXPECT_EQ(result.status, 128 + SIGINT);
  EXPECT_THAT(result.out, HasSubstr("interrupted before the end of the text"));
}

// The plan says so before anything is allocated, and what it says is enough.
TEST(Perplexity, KeepsToTheLimitOfMemory) {
  const std::string path = Excerpt();
  constexpr CacheBytes kPlan = ConfigCacheBytes<Bard>();
  constexpr size_t kChunk = 700;
  constexpr size_t kNeeds = (kPlan.At(kChunk) + kPlan.append) / (1 << 20) + 1;  // MiB
  const std::vector<std::string> command = {
      "perplexity", "-f", path, "-c", "700", "-o", "json", "--rewind", "-t", "1", "--cache-limit"};
  const auto run = [&](size_t limit) {
    std::vector<std::string> args = command;
    args.push_back(std::to_string(limit));
    return RunProgram(args);
  };
  EXPECT_EQ(run(kNeeds).status, 0);
  ExpectError(run(kNeeds - 1), 1,
              AllOf(HasSubstr("700 tokens"), HasSubstr(std::to_string((kNeeds - 1) << 20)),
                    HasSubstr(std::to_string(kPlan.At(kChunk) + kPlan.append)),
                    HasSubstr("--cache-limit")));
  ExpectError(run(0), 2, HasSubstr("--cache-limit"));
  unlink(path.c_str());
}

TEST(Perplexity, EvaluatesAsManyChunksAsAskedFor) {
  const auto run = [](std::vector<std::string> more) {
    more.insert(more.begin(),
                {"perplexity", "-f", "tests/golden/demo/heldout.txt", "-c", "64", "-o", "json"});
    return RunProgram(more).Json();
  };
  const auto whole = run({}), some = run({"--chunks", "2"});
  EXPECT_GT(whole["chunks"].get<int>(), 2);
  EXPECT_EQ(some["chunks"], 2);
  EXPECT_EQ(some["perplexity_after_chunk"][1], whole["perplexity_after_chunk"][1]);
  EXPECT_EQ(run({"--chunks", "100000"})["chunks"], whole["chunks"]);
}

TEST(Perplexity, RefusesATextShorterThanAChunk) {
  ExpectError(
      RunProgram({"perplexity", "-f", "-"}, {.input = "To be, or not to be"}), 1,
      testing::ContainsRegex("has ([0-9]+) tokens, and a chunk has 256: .*-c [0-9]+ or less"));
  ExpectError(RunProgram({"perplexity", "-f", "-"}, {.input = "a"}), 1,
              HasSubstr("a chunk has 256: give a longer text\n"));
  ExpectError(RunProgram({"perplexity", "-f", "no/such/file"}), 1, HasSubstr("'no/such/file'"));
}

TEST(LikelihoodSum, GivesMeanAndStandardError) {
  LikelihoodSum sum;
  sum.Add(1);
  EXPECT_EQ(sum.mean_error(), 0);
  for (double nll : {2.0, 3.0, 6.0}) sum.Add(nll);
  EXPECT_EQ(sum.count(), 4u);
  EXPECT_DOUBLE_EQ(sum.mean(), 3);
  // The squares' deviations are 4, 1, 0, 9: variance 14 / 4, over 4 - 1.
  EXPECT_DOUBLE_EQ(sum.mean_error(), std::sqrt(3.5 / 3));
  EXPECT_DOUBLE_EQ(sum.perplexity(), std::exp(3.0));
  EXPECT_DOUBLE_EQ(sum.perplexity_error(), std::exp(3.0) * std::sqrt(3.5 / 3));
}

}  // namespace
}  // namespace inlay
