// inlay logits against the golden values of the demo model.
#include <gtest/gtest.h>

#include "absl/strings/str_join.h"
#include "tests/tools/program.h"

namespace inlay {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// ||a - b||^2 / ||b||^2
double Nmse(const std::vector<double>& a, const std::vector<double>& b) {
  double error = 0;
  double norm = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    error += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return error / norm;
}

TEST(Logits, MatchesTheGoldenValues) {
  const auto golden = nlohmann::json::parse(ReadFile("tests/golden/demo/bard.golden.json"));
  ASSERT_EQ(golden["prompts"].size(), 3u);
  for (const auto& prompt : golden["prompts"]) {
    const std::vector<int32_t> ids = prompt["ids"];
    const std::vector<double> expected = prompt["logits"];
    const ProgramResult result =
        RunProgram({"logits", "--tokens", absl::StrJoin(ids, ","), "--greedy", "40"});
    EXPECT_EQ(result.status, 0);
    EXPECT_THAT(result.err, IsEmpty());
    const auto json = result.Json();
    EXPECT_EQ(json["tokens"], prompt["ids"]);
    EXPECT_EQ(json["greedy"], prompt["greedy"]);
    const std::vector<double> logits = json["logits"];
    ASSERT_EQ(logits.size(), expected.size());
    EXPECT_LE(Nmse(logits, expected), 1e-8) << ids.size() << " tokens";
  }
}

TEST(Logits, ContinuesOnlyWhenAsked) {
  const auto json = RunProgram({"logits", "--tokens", "2,5"}).Json();
  EXPECT_THAT(json["greedy"], IsEmpty());
  EXPECT_EQ(json["logits"].size(), 1024u);
}

TEST(Logits, RefusesWhatDoesNotFit) {
  ExpectError(RunProgram({"logits", "--tokens", "2,1024"}), 1, HasSubstr("1024"));
  ExpectError(RunProgram({"logits", "--tokens", "2,5,6", "-c", "2"}), 1, HasSubstr("3 tokens"));
}

// Before anything is computed: the last token that is chosen needs no room.
TEST(Logits, RefusesMoreGreedyTokensThanTheContextHolds) {
  const auto run = [](const std::string& greedy) {
    return RunProgram({"logits", "--tokens", "2,5", "-c", "4", "--greedy", greedy});
  };
  EXPECT_EQ(run("3").Json()["greedy"].size(), 3u);
  ExpectError(run("4"), 1,
              HasSubstr("2 tokens and 4 greedy after them need a context of 5; this one has 4"));
  ExpectError(run("2147483647"), 1, HasSubstr("need a context of 2147483648; this one has 4"));
}

TEST(Logits, TakesTheFormThatItHas) {
  EXPECT_EQ(RunProgram({"logits", "--tokens", "2,5", "-o", "json"}).out,
            RunProgram({"logits", "--tokens", "2,5"}).out);
  ExpectError(RunProgram({"logits", "--tokens", "2,5", "-o", "text"}), 2, HasSubstr("'text'"));
}

}  // namespace
}  // namespace inlay
