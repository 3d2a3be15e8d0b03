// The memory plan that the compiler computes is what caches then allocate.
#include "cache/cache_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/rank_share.h"
#include "cache/block_pool.h"
#include "cache/hybrid_cache.h"
#include "cache/layers/attention.h"
#include "configs/layers/attention.h"
#include "tests/cache/drive_cache.h"
#include "tests/gemma_like/tiny_configs.h"

namespace inlay {
namespace {

template <class Config_, class Policy_>
struct Case {
  using Config = Config_;
  using Policy = Policy_;
};

template <class C>
class CachePlanTest : public ::testing::Test {};

using Cases = ::testing::Types<
    Case<TinyBard, F32Storage>, Case<TinyBard, F16Storage>, Case<TinyBard, BF16Storage>,
    Case<TinyGemma, F32Storage>, Case<TinyGemma, F16Storage>, Case<TinyGemma, BF16Storage>,
    Case<TinyGranite, F32Storage>, Case<TinyGranite, F16Storage>, Case<TinyGranite, BF16Storage>,
    Case<TinyMamba, F32Storage>, Case<TinyLfm2, F32Storage>, Case<TinyParallel, F32Storage>,
    Case<TinyLeaky, F32Storage>, Case<TinyQwen, F32Storage>, Case<TinyQwen, Q8Storage>,
    Case<TinyGemma4, F32Storage>, Case<TinyGemma4, Q8Storage>, Case<TinyGemma4E, F32Storage>,
    Case<TinyEmbedding, F32Storage>, Case<TinyBard, Q8Storage>, Case<TinyGemma, Q8Storage>,
    Case<TinyGranite, Q8Storage>, Case<TinyShared, F32Storage>>;
TYPED_TEST_SUITE(CachePlanTest, Cases);

TYPED_TEST(CachePlanTest, EqualsWhatIsAllocated) {
  using Config = typename TypeParam::Config;
  using Policy = typename TypeParam::Policy;
  constexpr CacheBytes kPlan = ConfigCacheBytes<Config, Policy>();
  // By then every ring is full.
  const size_t full = 150 - 1 + Policy::kMaxAppend + Policy::kRewindDepth + 2 * kKvBlockRows;
  std::mt19937_64 random(1);
  for (int run = 0; run < 20; ++run) {
    auto pool = std::make_shared<BlockPool>();
    auto cache = CreateKVCache<Config, Policy>({.max_length = 3000, .pool = pool});
    const size_t most = run == 0 ? 1 : 1 + random() % 512;
    while (cache.length() < 3000) {
      const size_t before = cache.length();
      const size_t count = std::min<size_t>(1 + random() % most, 3000 - before);
      {
        auto transaction = cache.Begin(std::vector<int32_t>(count, 1));
        ASSERT_TRUE(transaction.ok());
        ASSERT_LE(pool->used_bytes(), kPlan.At(before + count) + kPlan.append);
        transaction->Commit();
      }
      const size_t length = cache.length();
      ASSERT_EQ(pool->used_bytes(), cache.allocated_bytes());
      ASSERT_LE(cache.allocated_bytes(), kPlan.At(length));
      // At the start of a chunk its log is not there yet.
      if (length >= full && length % kStateChunk != 0) {
        ASSERT_EQ(cache.allocated_bytes(), kPlan.At(length)) << length;
      }
    }
  }
}

TYPED_TEST(CachePlanTest, ForksCostWhatThePlanSays) {
  using Config = typename TypeParam::Config;
  using Policy = typename TypeParam::Policy;
  constexpr CacheBytes kPlan = ConfigCacheBytes<Config, Policy>();
  for (size_t length : {1, 31, 63, 100, 700, 1300}) {
    auto pool = std::make_shared<BlockPool>();
    auto cache = CreateKVCache<Config, Policy>({.max_length = 3000, .pool = pool});
    ASSERT_TRUE(AppendTokens(cache, length).ok());
    const size_t before = pool->used_bytes();
    auto fork = cache.ForkCache();
    ASSERT_EQ(pool->used_bytes(), before) << "a fork copies nothing";
    ASSERT_TRUE(AppendTokens(fork, 1).ok());
    // What one side copies, the rows that it adds, and at a boundary the state and log that it
    // begins.
    ASSERT_LE(pool->used_bytes(), before + kPlan.snapshot + kPlan.append);
    if ((length + 1) % kStateChunk != 0 && length % kKvBlockRows != 0) {
      ASSERT_LE(pool->used_bytes(), before + kPlan.snapshot);
    }
  }
}

TYPED_TEST(CachePlanTest, KeptForksCostWhatThePlanSays) {
  using Config = typename TypeParam::Config;
  using Policy = typename TypeParam::Policy;
  constexpr CacheBytes kPlan = ConfigCacheBytes<Config, Policy>();
  for (size_t length : {1, 31, 64, 100, 700, 1300}) {
    auto pool = std::make_shared<BlockPool>();
    auto cache = CreateKVCache<Config, Policy>({.max_length = 3000, .pool = pool});
    ASSERT_TRUE(AppendTokens(cache, length).ok());
    const auto kept = cache.ForkCache();
    while (cache.length() < 2900) {
      ASSERT_TRUE(AppendTokens(cache, 50).ok());
      ASSERT_LE(pool->used_bytes(), cache.allocated_bytes() + kPlan.Kept());
    }
    if (length == 1300) {
      EXPECT_EQ(pool->used_bytes(), cache.allocated_bytes() + kPlan.Kept());
    }
  }
}

TYPED_TEST(CachePlanTest, TrimmedForksCostWhatThePlanSays) {
  using Config = typename TypeParam::Config;
  using Policy = typename TypeParam::Policy;
  constexpr CacheBytes kPlan = ConfigCacheBytes<Config, Policy>();
  EXPECT_LE(kPlan.trimmed, kPlan.Kept());
  size_t most = 0;
  // At every alignment to chunks and blocks.
  for (size_t length = 1300; length < 1300 + kKvBlockRows; ++length) {
    auto pool = std::make_shared<BlockPool>();
    auto cache = CreateKVCache<Config, Policy>({.max_length = 3000, .pool = pool});
    ASSERT_TRUE(AppendTokens(cache, length).ok());
    auto kept = cache.ForkCache();
    ASSERT_TRUE(kept.Trim(0).ok());
    ASSERT_TRUE(AppendTokens(cache, 2900 - length).ok());
    const size_t own = pool->used_bytes() - cache.allocated_bytes();
    ASSERT_LE(own, kPlan.trimmed) << length;
    most = std::max(most, own);
  }
  EXPECT_EQ(most, kPlan.trimmed);
}

// What a model of several ranks plans with is enough at each of them, and each needs what its own
// share says.
TYPED_TEST(CachePlanTest, OfRanksIsTheLargest) {
  using Config = typename TypeParam::Config;
  using Policy = typename TypeParam::Policy;
  for (const size_t count : {1, 2, 3, 4}) {
    for (size_t rank = 0; rank < count; ++rank) {
      const RankShare share = {rank, count};
      const CacheBytes plan = ConfigCacheBytes<Config, Policy>(share);
      const CacheBytes most = ConfigCacheBytes<Config, Policy>(LargestShare(share));
      EXPECT_LE(plan.constant, most.constant);
      EXPECT_LE(plan.per_block, most.per_block);
      EXPECT_LE(plan.append, most.append);
      EXPECT_LE(plan.snapshot, most.snapshot);
      EXPECT_LE(plan.trimmed, most.trimmed);
      const size_t length = 3000;  // every ring is full
      HybridCache<Config> cache(Policy(), {.max_length = length}, share);
      while (cache.length() < length) ASSERT_TRUE(AppendTokens(cache, 50).ok());
      EXPECT_EQ(cache.allocated_bytes(), plan.At(length)) << rank << " of " << count;
    }
  }
}

// Each query of a rank reads a kv head that the rank stores, as many queries each, and no rank
// stores a head that it does not read.
TEST(RanksOfAttentionTest, StoreWhatTheirQueriesRead) {
  size_t shared = 0;
  for (const AttentionShape& shape : {AttentionShape{.heads = 16, .kv_heads = 8, .head_dim = 256},
                                      AttentionShape{.heads = 32, .kv_heads = 4, .head_dim = 512},
                                      AttentionShape{.heads = 8, .kv_heads = 2, .head_dim = 32},
                                      AttentionShape{.heads = 24, .kv_heads = 8, .head_dim = 64},
                                      AttentionShape{.heads = 12, .kv_heads = 1, .head_dim = 64}}) {
    const size_t heads = shape.heads, kv_heads = shape.kv_heads;
    for (size_t count = 2; count <= 32; ++count) {
      const size_t units = HeadUnits(shape, count), holders = KvHolders(shape, count);
      ASSERT_EQ(count % holders, 0u);
      shared += holders > 1 && kv_heads > 1;
      size_t next = 0;
      for (size_t rank = 0; rank < count; ++rank) {
        SCOPED_TRACE(testing::Message() << kv_heads << " kv heads, " << rank << " of " << count);
        if (units == 1) {
          EXPECT_EQ(OwnKvHeads(shape, {rank, count}), kv_heads);
          continue;
        }
        const PartRange own = PartOfRank(units, {rank, count});
        const size_t first = own.first * (heads / units), queries = own.count * (heads / units);
        EXPECT_EQ(first, std::exchange(next, first + queries));
        const PartRange kv = PartOfRank(kv_heads, ShareOfGroup({rank, count}, holders));
        ASSERT_EQ(OwnKvHeads(shape, {rank, count}), kv.count);
        ASSERT_EQ(queries % kv.count, 0u);
        for (size_t query = 0; query < queries; ++query) {
          EXPECT_EQ((first + query) / (heads / kv_heads), kv.first + query / (queries / kv.count));
        }
      }
      EXPECT_EQ(next, units > 1 ? heads : 0);
    }
  }
  EXPECT_EQ(shared, 7u);
}

// One append, and none of its rows overwrites another, whatever the window.
TEST(EmbeddingCacheTest, HoldsAllRowsOfTheLongestText) {
  auto cache = CreateKVCache<TinyEmbedding>();
  ASSERT_EQ(cache.max_append(), 2500u);
  auto transaction = cache.Begin(std::vector<int32_t>(2500, 1));
  ASSERT_TRUE(transaction.ok()) << transaction.status();
  transaction->Commit();
  constexpr size_t kBlocks = (2500 + kKvBlockRows - 1) / kKvBlockRows;
  constexpr size_t kRowBytes =
      2 * 2 * 16 * KvTypeBytes(kDefaultKvType);  // keys and values of two heads
  EXPECT_EQ(cache.allocated_bytes(), 2 * kBlocks * kKvBlockRows * kRowBytes);
}

}  // namespace
}  // namespace inlay
