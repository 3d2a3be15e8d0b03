// What a cache refuses whatever its config: snapshots of another type, and use after a move.
#include "cache/kv_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/byte_stream.h"
#include "cache/block_pool.h"
#include "cache/cache_follower.h"
#include "cache/hybrid_cache.h"
#include "cache/model_identity.h"
#include "tests/cache/drive_cache.h"
#include "tests/cache/idle_follower.h"
#include "tests/gemma_like/tiny_configs.h"

namespace inlay {
namespace {

using ::testing::HasSubstr;

// The name of another config, with other layers.
struct Impostor : TinyMamba {
  static constexpr std::string_view kName = TinyBard::kName;
};

// Its own factors, which no key of a file tells.
struct Louder : TinyBard {
  static constexpr float kEmbeddingScale = 2 * TinyBard::kEmbeddingScale;
};

void ExpectRefused(const absl::Status& status, absl::StatusCode code, const std::string& text) {
  EXPECT_EQ(status.code(), code);
  EXPECT_THAT(std::string(status.message()), HasSubstr(text));
}

TEST(KVCacheTest, FingerprintsTellConfigsOfOneNameApart) {
  EXPECT_NE(ConfigFingerprint<TinyBard>(), ConfigFingerprint<Impostor>());
  EXPECT_NE(ConfigFingerprint<TinyBard>(), ConfigFingerprint<Louder>());
  EXPECT_NE((StorageFingerprint<TinyBard, F32Storage>()),
            (StorageFingerprint<TinyBard, Q8Storage>()));
  EXPECT_EQ(CreateKVCache<TinyBard>().config_fingerprint(), ConfigFingerprint<TinyBard>());
  EXPECT_EQ((CreateKVCache<TinyBard, Q8Storage>().config_fingerprint()),
            ConfigFingerprint<TinyBard>());
}

TEST(KVCacheTest, RestoreRefusesSnapshotsThatDoNotFit) {
  const auto pool = std::make_shared<BlockPool>();
  auto cache = CreateKVCache<TinyBard>({.max_length = 100, .pool = pool});
  ASSERT_TRUE(AppendTokens(cache, 7).ok());

  auto impostor = CreateKVCache<Impostor>();
  ASSERT_TRUE(AppendTokens(impostor, 3).ok());
  ExpectRefused(cache.Restore(std::move(impostor)), absl::StatusCode::kInvalidArgument,
                "cannot be restored into a cache of config tiny-bard with f16 rows");
  auto q8 = CreateKVCache<TinyBard, Q8Storage>();
  ExpectRefused(cache.Restore(std::move(q8)), absl::StatusCode::kInvalidArgument,
                "a snapshot of config tiny-bard with q8 rows");
  auto elsewhere = CreateKVCache<TinyBard>();
  ASSERT_TRUE(AppendTokens(elsewhere, 3).ok());
  ExpectRefused(cache.Restore(std::move(elsewhere)), absl::StatusCode::kInvalidArgument,
                "a snapshot whose blocks are of another pool");
  EXPECT_EQ(elsewhere.length(), 3u);
  auto longer = CreateKVCache<TinyBard>({.max_length = 200, .pool = pool});
  ASSERT_TRUE(AppendTokens(longer, 101).ok());
  ExpectRefused(cache.Restore(std::move(longer)), absl::StatusCode::kOutOfRange,
                "the snapshot has 101 tokens; the limit here is 100");
  EXPECT_EQ(longer.length(), 101u);
  {
    auto open = cache.Begin(std::vector<int32_t>(2, 1));
    ASSERT_TRUE(open.ok());
    ExpectRefused(cache.Trim(0), absl::StatusCode::kFailedPrecondition, "cannot be trimmed");
    ExpectRefused(cache.Restore(CreateKVCache<TinyBard>()), absl::StatusCode::kFailedPrecondition,
                  "while a transaction is open");
  }
  EXPECT_EQ(cache.length(), 7u);

  auto fits = CreateKVCache<TinyBard>({.max_length = 5000, .pool = pool});
  ASSERT_TRUE(AppendTokens(fits, 100).ok());
  ASSERT_TRUE(cache.Restore(std::move(fits)).ok());
  EXPECT_EQ(cache.length(), 100u);
  EXPECT_EQ(cache.max_length(), 100u);
}

TEST(KVCacheTest, RestoreKeepsTheVocabularyOfTheCache) {
  const auto pool = std::make_shared<BlockPool>();
  auto large = CreateKVCache<TinyBard>({.pool = pool, .vocab_size = 21});
  ASSERT_TRUE(AppendTokens(large, 1, /*token=*/20).ok());
  std::vector<uint8_t> bytes;
  MemorySink sink(bytes);
  ASSERT_TRUE(large.Save({}, sink).ok());
  const auto refused = [&](KVCache& cache) {
    MemorySource source(bytes);
    ExpectRefused(cache.Load({}, source).status(), absl::StatusCode::kDataLoss,
                  "token id 20 at index 0 is outside 0 to 9");
  };
  auto small = CreateKVCache<TinyBard>({.pool = pool, .vocab_size = 10});
  refused(small);
  ASSERT_TRUE(large.Rewind(0).ok());
  ASSERT_TRUE(small.Restore(large.ForkCache()).ok());
  refused(small);
}

TEST(KVCacheTest, OneRanksPartIsNotSavedOrLoadedAlone) {
  HybridCache<TinyBard> part(F32Storage(), {}, {.rank = 0, .count = 2});
  ASSERT_TRUE(AppendTokens(part, 3).ok());
  const std::string text = "it has one of 2 ranks' parts of the layers";
  std::vector<uint8_t> bytes;
  MemorySink sink(bytes);
  ExpectRefused(part.Save({}, sink), absl::StatusCode::kFailedPrecondition, text);
  EXPECT_TRUE(bytes.empty());

  part.SetFollower(std::make_shared<IdleFollower>());
  ASSERT_TRUE(part.Save({}, sink).ok());
  part.SetFollower(nullptr);
  MemorySource source(bytes);
  ExpectRefused(part.Load({}, source).status(), absl::StatusCode::kFailedPrecondition, text);
  EXPECT_EQ(part.length(), 3u);
}

TEST(KVCacheTest, AFloorThatIsRaisedIsThatOfForksAndSnapshots) {
  auto cache = CreateKVCache<TinyBard>();
  ASSERT_TRUE(AppendTokens(cache, 70).ok());
  const size_t of_layers = cache.RewindFloor();
  ASSERT_LT(of_layers, 60u);
  std::vector<uint8_t> bytes;
  MemorySink sink(bytes);
  ASSERT_TRUE(cache.Save({}, sink).ok());
  const auto free = cache.Fork();
  ASSERT_TRUE(free.ok());

  cache.RaiseRewindFloor(60);
  cache.RaiseRewindFloor(50);
  EXPECT_EQ(cache.RewindFloor(), 60u);
  ExpectRefused(cache.Rewind(59), absl::StatusCode::kOutOfRange,
                "the lowest position possible is 60");
  EXPECT_EQ(cache.ForkCache().RewindFloor(), 60u);
  ASSERT_TRUE(cache.Rewind(60).ok());
  ASSERT_TRUE(AppendTokens(cache, 5).ok());
  EXPECT_EQ(cache.RewindFloor(), 60u);
  auto other = CreateKVCache<TinyBard>({.pool = cache.shared_pool()});
  ASSERT_TRUE(other.Restore(cache.ForkCache()).ok());
  EXPECT_EQ(other.RewindFloor(), 60u);
  auto moved = std::move(other);
  EXPECT_EQ(moved.RewindFloor(), 60u);

  // What takes its place goes back as far as its own layers do.
  ASSERT_TRUE(cache.Restore(std::move(**free)).ok());
  EXPECT_EQ(cache.RewindFloor(), of_layers);
  MemorySource source(bytes);
  ASSERT_TRUE(moved.Load({}, source).ok());
  EXPECT_LT(moved.RewindFloor(), 60u);
  EXPECT_TRUE(moved.Rewind(59).ok());

  // An empty conversation needs nothing of the past.
  ASSERT_TRUE(AppendTokens(moved, 10).ok());
  moved.RaiseRewindFloor(60);
  EXPECT_FALSE(moved.CanRewindTo(1));
  ASSERT_TRUE(moved.Rewind(0).ok());
  EXPECT_EQ(moved.length(), 0u);
  EXPECT_EQ(moved.RewindFloor(), 0u);
}

TEST(KVCacheTest, WhatWasMovedFromIsEmptyAndRefusesUse) {
  auto from = CreateKVCache<TinyBard>();
  ASSERT_TRUE(AppendTokens(from, 70).ok());
  auto cache = std::move(from);
  EXPECT_EQ(cache.length(), 70u);
  // NOLINTBEGIN(bugprone-use-after-move): that is what is tested.
  EXPECT_EQ(from.length(), 0u);
  EXPECT_TRUE(from.tokens().empty());
  EXPECT_EQ(from.allocated_bytes(), 0u);
  const std::string text = "it was moved from";
  constexpr auto kRefused = absl::StatusCode::kFailedPrecondition;
  ExpectRefused(from.Begin(std::vector<int32_t>(1, 1)).status(), kRefused, text);
  ExpectRefused(from.Rewind(0), kRefused, text);
  std::vector<uint8_t> bytes;
  MemorySink sink(bytes);
  ExpectRefused(from.Save({}, sink), kRefused, text);
  ASSERT_TRUE(cache.Save({}, sink).ok());
  MemorySource source(bytes);
  ExpectRefused(from.Load({}, source).status(), kRefused, text);
  ExpectRefused(from.Restore(cache.ForkCache()), kRefused, text);
  ExpectRefused(cache.Restore(std::move(from)), kRefused, text);
  ExpectRefused(from.Fork().status(), kRefused, text);
  EXPECT_EQ(cache.length(), 70u);

  from = std::move(cache);  // and can be used again
  EXPECT_EQ(from.length(), 70u);
  EXPECT_TRUE(AppendTokens(from, 1).ok());
  // NOLINTEND(bugprone-use-after-move)
}

}  // namespace
}  // namespace inlay
