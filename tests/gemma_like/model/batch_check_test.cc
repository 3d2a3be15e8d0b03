#include "gemma_like/model/batch_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

absl::Status Check(KVCache& cache) {
  EngineInfo info;
  info.config_name = "tiny-bard";
  info.config_fingerprint = ConfigFingerprint<TinyBard>();
  info.vocab_size = 48;
  info.max_batch = 512;
  const std::vector<int32_t> tokens = {1, 2, 3};
  const SequenceStep step{.cache = &cache, .tokens = tokens, .logit_rows = 0};
  return CheckBatch({&step, 1}, FloatRows(nullptr, 0, 48), info);
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

}  // namespace
}  // namespace inlay
