// Conversations in many threads with one set of weights, and pools that run out in the middle of a
// pass: the bits stay those of a straight run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cache/block_pool.h"
#include "cache/byte_stream.h"
#include "tests/gemma_like/random_program.h"

namespace inlay {
namespace {

using ConcurrencyTest = RandomProgramTest;

INSTANTIATE_TEST_SUITE_P(Families, ConcurrencyTest, ::testing::ValuesIn(AllFamilies()),
                         [](const auto& info) { return info.param.name; });

TEST_P(ConcurrencyTest, ForksInManyThreads) {
  Conversation origin{NewCache(), 0};
  ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[0], {&origin}, {200}));
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([this, t, c = Conversation{origin.cache->Fork(), 0}]() mutable {
      std::mt19937_64 random(t);
      Conversation snapshot{c.cache->Fork(), 0};
      const size_t steps = std::max<size_t>(Steps() / 20, 40);
      for (size_t i = 0; i < steps; ++i) {
        Engine& model = *models_[random() % models_.size()];
        switch (random() % 6) {
          case 0:
            snapshot.cache = c.cache->Fork();
            break;
          case 1:
            c.cache = snapshot.cache->Fork();
            break;
          case 2: {
            const size_t floor = c.cache->RewindFloor();
            ASSERT_TRUE(c.cache->Rewind(floor + random() % (c.cache->length() - floor + 1)).ok());
            break;
          }
          case 3: {
            std::vector<uint8_t> bytes;
            MemorySink sink(bytes);
            ASSERT_TRUE(c.cache->Save(0, sink).ok());
            MemorySource source(bytes);
            ASSERT_TRUE(c.cache->Load(0, source).ok());
            break;
          }
          default: {
            const size_t n = std::min<size_t>(1 + random() % 40, kLength - c.cache->length());
            if (n > 0) {
              ASSERT_NO_FATAL_FAILURE(AppendAndCompare(model, {&c}, {n}));
            }
          }
        }
      }
    });
  }
  origin.cache.reset();
  for (std::thread& thread : threads) thread.join();
}

// Programs of many conversations each, with one set of weights and one pool.
TEST_P(ConcurrencyTest, RandomProgramsInManyThreads) {
  auto pool = std::make_shared<BlockPool>(BlockPool::Options{.poison = true});
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back(
        [&, t] { RunProgram(Seed() + t, std::max<size_t>(Steps() / 4, 200), pool); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool->used_bytes(), 0u);
}

// Something else takes the pool's memory, so that a pass finds too little in any of its layers.
TEST_P(ConcurrencyTest, PoolThatRunsOut) {
  std::mt19937_64 random(Seed());
  constexpr size_t kLimit = size_t{8} << 20;
  auto pool =
      std::make_shared<BlockPool>(BlockPool::Options{.limit_bytes = kLimit, .poison = true});
  Conversation c{NewCache(pool), 0};
  size_t refused = 0;
  while (c.cache->length() < kLength - 200) {
    const size_t length = c.cache->length();
    const size_t n = 1 + random() % 100;
    for (int attempt = 0; attempt < 4; ++attempt) {
      const std::unique_ptr<KVCache> before = c.cache->Fork();
      const size_t free = random() % 60'000;
      const BlockRef rest = pool->Allocate(kLimit - pool->used_bytes() - free);
      ASSERT_TRUE(rest);
      const std::vector<int32_t> wrong(n, 3);
      const SequenceStep step{.cache = c.cache.get(), .tokens = wrong, .logit_rows = 0};
      const absl::Status status = models_[0]->Forward({&step, 1}, FloatRows(nullptr, 0, vocab_));
      if (status.ok()) {  // it was enough
        c.cache->Restore(std::move(*before));
        continue;
      }
      ASSERT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
      ASSERT_EQ(c.cache->length(), length);
      ++refused;
    }
    ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[0], {&c}, {n}));
  }
  EXPECT_GT(refused, 10u);
}

}  // namespace
}  // namespace inlay
