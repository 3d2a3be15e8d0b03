#include "gemma_like/model/batch_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "cache/fingerprint.h"
#include "cache/hybrid_cache.h"
#include "configs/bard.h"
#include "tests/gemma_like/tiny_configs.h"

namespace inlay {
namespace {

using ::testing::HasSubstr;

// The name of another config, with other layers.
struct Impostor : TinyMamba {
  static constexpr std::string_view kName = TinyBard::kName;
};

absl::Status Check(absl::Span<KVCache* const> caches, absl::Span<const absl::Status> outcomes = {},
                   std::vector<int32_t> tokens = {1, 2, 3}) {
  EngineInfo info;
  info.config_name = "tiny-bard";
  info.config_fingerprint = ConfigFingerprint<TinyBard>();
  info.vocab_size = 48;
  info.max_batch = 512;
  std::vector<SequenceStep> steps;
  for (KVCache* cache : caches)
    steps.push_back({.cache = cache, .tokens = tokens, .logit_rows = 0});
  return CheckBatch(steps, FloatRows(nullptr, 0, 48), outcomes, info);
}
absl::Status Check(KVCache& cache) { return Check({&cache}); }

void ExpectRefused(const absl::Status& status, const std::string& message) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), message);
}

TEST(BatchCheckTest, AcceptsCachesOfTheConfigWhateverTheirRows) {
  auto f32 = CreateKVCache<TinyBard>();
  auto q8 = CreateKVCache<TinyBard, Q8Storage>();
  EXPECT_TRUE(Check(f32).ok()) << Check(f32);
  EXPECT_TRUE(Check(q8).ok());
}

TEST(BatchCheckTest, RefusesCachesOfAnotherConfigAlsoOfTheSameName) {
  auto bard = CreateKVCache<Bard>();
  EXPECT_THAT(std::string(Check(bard).message()),
              HasSubstr("a cache of config bard cannot be used with a model of config tiny-bard"));
  auto impostor = CreateKVCache<Impostor>();
  const absl::Status status = Check(impostor);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("tiny-bard whose layers differ"));
}

TEST(BatchCheckTest, RefusesAStepWithoutACache) {
  auto bard = CreateKVCache<TinyBard>();
  ExpectRefused(Check({&bard, nullptr}), "step 1 of the batch has no cache");
}

TEST(BatchCheckTest, RefusesAnotherNumberOfOutcomesThanOfSteps) {
  auto one = CreateKVCache<TinyBard>(), other = CreateKVCache<TinyBard>();
  for (const size_t outcomes : {0, 2}) {
    EXPECT_TRUE(Check({&one, &other}, std::vector<absl::Status>(outcomes)).ok());
  }
  for (const size_t outcomes : {1, 3}) {
    ExpectRefused(Check({&one, &other}, std::vector<absl::Status>(outcomes)),
                  absl::StrCat("the batch has 2 steps but ", outcomes,
                               " outcomes: there must be one for each step, or none"));
  }
}

TEST(BatchCheckTest, RefusesIdsThatAreNoTokens) {
  auto bard = CreateKVCache<TinyBard>();
  EXPECT_TRUE(Check({&bard}, {}, {0, 47}).ok());
  ExpectRefused(Check({&bard}, {}, {1, 48}), "token id 48 at index 1 is outside 0 to 47");
  ExpectRefused(Check({&bard}, {}, {-1}), "token id -1 at index 0 is outside 0 to 47");
}

TEST(BatchCheckTest, RefusesLimitsOutOfBounds) {
  for (const size_t most : {size_t{1}, size_t{512}, size_t{1} << 20})
    EXPECT_TRUE(CheckMaxBatch(most).ok());
  ExpectRefused(CheckMaxBatch(0), "max_batch is 0, not between 1 and 1048576");
  ExpectRefused(CheckMaxBatch((size_t{1} << 20) + 1),
                "max_batch is 1048577, not between 1 and 1048576");
}

}  // namespace
}  // namespace inlay
