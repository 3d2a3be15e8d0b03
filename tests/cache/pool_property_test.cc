// Caches that share a pool with a limit: there is nothing to fragment, and who finds too little
// left is told so and loses nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cache/block_pool.h"
#include "cache/cache_plan.h"
#include "cache/hybrid_cache.h"
#include "tests/cache/drive_cache.h"
#include "tests/gemma_like/tiny_configs.h"
#include "tests/must.h"

namespace inlay {
namespace {

constexpr size_t kMaxLength = 2000;
constexpr size_t kMost = 12;  // conversations at a time

size_t Steps() {
  const char* value = std::getenv("INLAY_PROPERTY_STEPS");
  return value == nullptr ? 100'000 : std::strtoul(value, nullptr, 10);
}

// Bytes that a batch of n tokens takes from an empty pool, for n = 0 .. the largest.
template <class Config>
std::vector<size_t> BatchNeeds() {
  std::vector<size_t> needs = {0};
  for (size_t n = 1; n <= F32Storage::kMaxAppend; ++n) {
    auto pool = std::make_shared<BlockPool>();
    auto cache = CreateKVCache<Config>({.max_length = kMaxLength, .pool = pool});
    auto transaction = cache.Begin(std::vector<int32_t>(n, 1));
    EXPECT_TRUE(transaction.ok());
    needs.push_back(pool->used_bytes());
  }
  return needs;
}

template <class Config>
class PoolPropertyTest : public ::testing::Test {
 protected:
  static HybridCache<Config> NewCache(std::shared_ptr<BlockPool> pool) {
    return CreateKVCache<Config>({.max_length = kMaxLength, .pool = std::move(pool)});
  }

  // Random operations on conversations that share a pool of this limit. Adds to `refused` how many
  // appends were.
  void RunAtTheLimit(size_t limit, size_t steps, size_t& refused) {
    const std::vector<size_t> needs = BatchNeeds<Config>();
    auto pool = std::make_shared<BlockPool>(BlockPool::Options{.limit_bytes = limit});
    std::mt19937_64 random(1);
    struct Conversation {
      HybridCache<Config> cache;
      size_t greatest = 0;  // length that it has had since Trim
      size_t floor = 0;     // no lower position has to be rewound to since Trim

      size_t HighestFloor() const {
        return std::max(floor, greatest - std::min(greatest, cache.rewind_depth()));
      }
    };
    std::vector<Conversation> all;
    size_t forks = 0, rewinds = 0, trims = 0, drops = 0, appends = 0, checks = 0;
    for (size_t step = 0; step < steps; ++step) {
      if (all.empty()) all.push_back({NewCache(pool)});
      Conversation& conversation = all[random() % all.size()];
      HybridCache<Config>& cache = conversation.cache;
      switch (random() % 9) {
        case 0:
          if (all.size() < kMost)
            all.push_back({cache.ForkCache(), conversation.greatest, conversation.floor});
          ++forks;
          break;
        case 1: {
          const size_t floor = cache.RewindFloor();
          // The guaranteed depth, whatever has happened before.
          ASSERT_LE(floor, conversation.HighestFloor());
          const size_t position =
              random() % 8 == 0 ? 0 : floor + random() % (cache.length() - floor + 1);
          ASSERT_TRUE(cache.Rewind(position).ok());
          if (position == 0) conversation.greatest = conversation.floor = 0;
          ++rewinds;
          break;
        }
        case 8: {
          const size_t rewind = random() % 40, used = pool->used_bytes();
          ASSERT_TRUE(cache.Trim(rewind).ok());
          conversation.floor = std::max(conversation.HighestFloor(),
                                        cache.length() - std::min(cache.length(), rewind));
          conversation.greatest = cache.length();
          ASSERT_LE(cache.RewindFloor(), conversation.HighestFloor());
          if (all.size() == 1) {
            ASSERT_LE(pool->used_bytes(), used) << "it shares nothing";
          }
          ++trims;
          break;
        }
        case 2:
          std::swap(conversation, all.back());
          all.pop_back();
          ++drops;
          break;
        case 3:
          if (all.size() < kMost) all.push_back({NewCache(pool)});
          break;
        default: {
          const size_t length = cache.length();
          const size_t most = random() % 4 == 0 ? 512 : 40;
          const size_t n = std::min<size_t>(1 + random() % most, kMaxLength - length);
          if (n == 0) break;
          auto transaction = cache.Begin(std::vector<int32_t>(n, 1));
          if (transaction.ok() && random() % 8 != 0) {
            transaction->Commit();
            conversation.greatest = std::max(conversation.greatest, cache.length());
            ++appends;
            break;
          }
          if (!transaction.ok()) {
            ASSERT_EQ(transaction.status().code(), absl::StatusCode::kResourceExhausted);
            ++refused;
          }
          ASSERT_EQ(cache.length(), length);
          ASSERT_EQ(cache.tokens().size(), length);
        }
      }
      ASSERT_LE(pool->used_bytes(), limit);
      if (step % 10 != 9) continue;
      // The largest batch that is not larger than what is free.
      const size_t free = limit - pool->used_bytes();
      const size_t fits =
          static_cast<size_t>(std::upper_bound(needs.begin(), needs.end(), free) - needs.begin()) -
          1;
      if (fits > 0) {
        HybridCache<Config> fresh = NewCache(pool);
        ASSERT_TRUE(fresh.Begin(std::vector<int32_t>(fits, 1)).ok())
            << fits << " tokens, " << needs[fits] << " of " << free << " bytes";
      }
      if (fits + 1 < needs.size()) {
        HybridCache<Config> fresh = NewCache(pool);
        ASSERT_FALSE(fresh.Begin(std::vector<int32_t>(fits + 1, 1)).ok());
      }
      ++checks;
    }
    std::printf(
        "%zu steps: %zu appends, %zu refused, %zu forks, %zu rewinds, %zu trims, %zu drops, "
        "%zu checks\n",
        steps, appends, refused, forks, rewinds, trims, drops, checks);
    all.clear();
    EXPECT_EQ(pool->used_bytes(), 0u);
    // And all of it is there for one conversation after the other.
    HybridCache<Config> last = NewCache(pool);
    EXPECT_TRUE(AppendTokens(last, kMaxLength).ok());
  }
};

using Configs = ::testing::Types<TinyBard, TinyGemma, TinyGranite, TinyMamba>;
TYPED_TEST_SUITE(PoolPropertyTest, Configs);

// With room for few conversations and for many.
TYPED_TEST(PoolPropertyTest, ABatchOfTheFreeSizeAlwaysFits) {
  const size_t one = ConfigCacheBytes<TypeParam>().At(kMaxLength);
  size_t refused = 0;
  const size_t steps = std::max<size_t>(Steps(), 3000);  // fewer do not fill the pool
  for (size_t room : {2, 3, 6}) {
    ASSERT_NO_FATAL_FAILURE(this->RunAtTheLimit(one * room, steps / 3 + 1, refused));
  }
  EXPECT_GT(refused, steps / 100);
}

// With every amount of room too small by something, in the middle of every layer.
TYPED_TEST(PoolPropertyTest, ExhaustionAnywhereChangesNothing) {
  for (size_t length : {0, 1, 31, 64, 100, 700}) {
    for (size_t count : {1, 33, 64, 200, 512}) {
      auto pool = std::make_shared<BlockPool>();
      size_t needed = 0;
      {
        auto probe = this->NewCache(pool);
        ASSERT_TRUE(AppendTokens(probe, length).ok());
        const auto origin = probe.ForkCache();  // so that shared blocks are copied
        const auto open = probe.Begin(std::vector<int32_t>(count, 2));
        ASSERT_TRUE(open.ok());
        needed = pool->used_bytes();
      }
      for (int part = 0; part < 8; ++part) {
        // A pool's limit is fixed, so it is wide and somebody else takes the rest.
        const size_t limit = 4 * needed + (size_t{1} << 20);
        auto limited = std::make_shared<BlockPool>(BlockPool::Options{.limit_bytes = limit});
        auto cache = this->NewCache(limited);
        ASSERT_TRUE(AppendTokens(cache, length).ok());
        auto origin = cache.ForkCache();
        const size_t base = limited->used_bytes();
        if (needed == base) break;  // nothing to run out of
        // Free is less than what is missing: by a little, by half, by nearly all.
        const size_t free = (needed - base - 1) * static_cast<size_t>(part) / 7;
        const BlockRef rest = limited->Allocate(limit - base - free);
        ASSERT_TRUE(rest);
        const size_t used = limited->used_bytes();
        const std::vector<int32_t> before(cache.tokens().begin(), cache.tokens().end());
        const auto refused = cache.Begin(std::vector<int32_t>(count, 2));
        ASSERT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
        EXPECT_EQ(cache.length(), length);
        EXPECT_TRUE(cache.tokens() == absl::MakeConstSpan(before));
        EXPECT_LE(cache.RewindFloor(), length - std::min<size_t>(length, cache.rewind_depth()));
        EXPECT_LE(limited->used_bytes(), limited->limit_bytes());
        EXPECT_GE(limited->used_bytes(), used);
      }
    }
  }
}

// Forks of one conversation in several threads at once; TSan watches.
TYPED_TEST(PoolPropertyTest, ForksInManyThreads) {
  auto pool = std::make_shared<BlockPool>(BlockPool::Options{
      .limit_bytes = ConfigCacheBytes<TypeParam>().At(kMaxLength) * 6, .poison = true});
  auto origin = std::make_unique<HybridCache<TypeParam>>(this->NewCache(pool));
  ASSERT_TRUE(AppendTokens(*origin, 300).ok());
  std::atomic<size_t> appended{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([fork = Must(origin->Fork()), t, &appended]() mutable {
      std::mt19937_64 random(t);
      std::unique_ptr<KVCache> snapshot = Must(fork->Fork());
      for (int i = 0; i < 400; ++i) {
        switch (random() % 5) {
          case 0:
            snapshot = Must(fork->Fork());
            break;
          case 1:
            EXPECT_TRUE(fork->Rewind(std::max(fork->RewindFloor(), fork->length() / 2)).ok());
            break;
          case 2:
            fork = Must(snapshot->Fork());
            break;
          default: {
            const size_t n = std::min<size_t>(1 + random() % 60, kMaxLength - fork->length());
            if (n > 0 && AppendTokens(*fork, n).ok()) appended += n;
          }
        }
      }
    });
  }
  origin.reset();  // while others hold its blocks
  for (std::thread& thread : threads) thread.join();
  threads.clear();
  EXPECT_GT(appended.load(), 1000u);
  EXPECT_EQ(pool->used_bytes(), 0u);
}

}  // namespace
}  // namespace inlay
