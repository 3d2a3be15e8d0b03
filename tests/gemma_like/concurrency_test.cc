// Conversations in many threads with one set of weights, and pools that run out in the middle of a
// pass: the bits stay those of a straight run.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/byte_stream.h"
#include "cache/block_pool.h"
#include "cache/model_identity.h"
#include "gemma_like/generation/generate.h"
#include "gemma_like/generation/prefix_cache.h"
#include "tests/gemma_like/random_program.h"
#include "tests/must.h"

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
    threads.emplace_back([this, t, c = Conversation{Must(origin.cache->Fork()), 0}]() mutable {
      std::mt19937_64 random(t);
      Conversation snapshot{Must(c.cache->Fork()), 0};
      const size_t steps = std::max<size_t>(Steps() / 20, 40);
      for (size_t i = 0; i < steps; ++i) {
        Engine& model = *models_[random() % models_.size()];
        switch (random() % 6) {
          case 0:
            snapshot.cache = Must(c.cache->Fork());
            break;
          case 1:
            c.cache = Must(snapshot.cache->Fork());
            break;
          case 2: {
            const size_t floor = c.cache->RewindFloor();
            ASSERT_TRUE(c.cache->Rewind(floor + random() % (c.cache->length() - floor + 1)).ok());
            break;
          }
          case 3: {
            std::vector<uint8_t> bytes;
            MemorySink sink(bytes);
            ASSERT_TRUE(c.cache->Save({}, sink).ok());
            MemorySource source(bytes);
            ASSERT_TRUE(c.cache->Load({}, source).ok());
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
      const std::unique_ptr<KVCache> before = Must(c.cache->Fork());
      const size_t free = random() % 60'000;
      const BlockRef rest = pool->Allocate(kLimit - pool->used_bytes() - free);
      ASSERT_TRUE(rest);
      const std::vector<int32_t> wrong(n, 3);
      const SequenceStep step{.cache = c.cache.get(), .tokens = wrong, .logit_rows = 0};
      const absl::Status status = models_[0]->Forward({&step, 1}, FloatRows(nullptr, 0, vocab_));
      if (status.ok()) {  // it was enough
        ASSERT_TRUE(c.cache->Restore(std::move(*before)).ok());
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

// All at once: many conversations out of one small pool, passes that are cancelled at any moment.
TEST_P(ConcurrencyTest, CancelledAndOutOfMemoryInManyThreads) {
  auto pool = std::make_shared<BlockPool>(
      BlockPool::Options{.limit_bytes = size_t{1} << 20, .poison = true});
  std::atomic<int> cancelled = 0, refused = 0, done = 0;
  std::atomic<bool> stop = false;  // one for all, set by each now and then
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      Conversation c{NewCache(pool), t};
      std::vector<std::unique_ptr<KVCache>> forks;
      std::vector<float> logits(vocab_);
      for (size_t i = std::max<size_t>(Steps() / 10, 60); i > 0; --i) {
        const size_t length = c.cache->length();
        const size_t n = std::min<size_t>(1 + random() % 120, kLength - length);
        const SequenceStep step{.cache = c.cache.get(),
                                .tokens = absl::MakeConstSpan(texts_[t]).subspan(length, n)};
        stop = random() % 4 == 0;
        const absl::Status status = models_[random() % 2]->Forward(
            {&step, 1}, FloatRows(logits.data(), 1, vocab_), [&] { return stop.exchange(false); });
        if (status.ok()) {
          EXPECT_EQ(BitsOf(logits.data(), vocab_), expected_[t][length + n - 1]);
          ++done;
          forks.push_back(Must(c.cache->Fork()));
        } else {
          EXPECT_EQ(c.cache->length(), length);
          ++(absl::IsCancelled(status) ? cancelled : refused);
          EXPECT_TRUE(absl::IsCancelled(status) || absl::IsResourceExhausted(status)) << status;
          if (absl::IsResourceExhausted(status)) forks.clear();
        }
        if (c.cache->length() > kLength - 150 || (!status.ok() && random() % 8 == 0))
          c.cache = NewCache(pool);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(done, 20);
  EXPECT_GT(cancelled, 5);
  EXPECT_GT(refused, 5);
  EXPECT_EQ(pool->used_bytes(), 0u);
}

// Prompts with common beginnings, whose snapshots all threads leave, take and push out.
TEST_P(ConcurrencyTest, OnePrefixCacheForManyThreads) {
  auto pool = std::make_shared<BlockPool>(BlockPool::Options{.poison = true});
  PrefixCache prefixes(size_t{2} << 20);
  std::atomic<size_t> reused = 0;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      std::vector<float> logits(vocab_);
      for (size_t i = std::max<size_t>(Steps() / 40, 15); i > 0; --i) {
        const size_t text = random() % kTexts;
        const size_t n = 1 + random() % 300;
        const auto cache = NewCache(pool);
        const auto cost = PrefillThrough(prefixes, *models_[random() % 2], *cache,
                                         absl::MakeConstSpan(texts_[text]).first(n), 64,
                                         FloatRows(logits.data(), 1, vocab_));
        ASSERT_TRUE(cost.ok()) << cost.status();
        ASSERT_EQ(BitsOf(logits.data(), vocab_), expected_[text][n - 1]);
        reused += cost->reused;
        if (random() % 4 == 0) prefixes.DropOldest();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(reused, 0u);
  while (prefixes.DropOldest()) {
  }
  EXPECT_EQ(pool->used_bytes(), 0u);
}

TEST_P(ConcurrencyTest, FourIdenticalGreedyPromptsInOneBatch) {
  const auto prompt = absl::MakeConstSpan(texts_[0]).first(45);
  const auto answer = [&](Engine& model, size_t copies) {
    std::vector<std::unique_ptr<KVCache>> caches;
    std::vector<std::vector<int32_t>> answers(copies);
    for (size_t i = 0; i < copies; ++i) caches.push_back(NewCache());
    for (int step = 0; step < 12; ++step) {
      std::vector<SequenceStep> steps;
      for (size_t i = 0; i < copies; ++i) {
        const auto last = absl::MakeConstSpan(answers[i]).last(step == 0 ? 0 : 1);
        steps.push_back({.cache = caches[i].get(), .tokens = step == 0 ? prompt : last});
      }
      std::vector<float> logits(copies * vocab_);
      EXPECT_TRUE(model.Forward(steps, FloatRows(logits.data(), copies, vocab_)).ok());
      for (size_t i = 0; i < copies; ++i) {
        const float* row = &logits[i * vocab_];
        answers[i].push_back(static_cast<int32_t>(std::max_element(row, row + vocab_) - row));
      }
    }
    return std::set<std::vector<int32_t>>(answers.begin(), answers.end());
  };
  const auto alone = answer(*models_[0], 1);
  for (auto& model : models_) EXPECT_EQ(answer(*model, 4), alone);
}

}  // namespace
}  // namespace inlay
