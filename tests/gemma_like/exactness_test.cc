// Promises P2 and P3: whatever happened to a conversation before, a token's logits have the bits of
// a straight run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/byte_stream.h"
#include "cache/block_pool.h"
#include "cache/cache_plan.h"
#include "cache/model_identity.h"
#include "cache/storage_policy.h"
#include "gemma_like/engine.h"
#include "gemma_like/generation/generate.h"
#include "ops/attention/kv_shape.h"
#include "tests/gemma_like/random_program.h"
#include "tests/must.h"

namespace inlay {
namespace {

using ExactnessTest = RandomProgramTest;

INSTANTIATE_TEST_SUITE_P(Families, ExactnessTest, ::testing::ValuesIn(AllFamilies()),
                         [](const auto& info) { return info.param.name; });

TEST_P(ExactnessTest, PrefillInOneGoAndInRandomSplits) {
  std::mt19937_64 random(Seed());
  for (auto& model : models_) {
    Conversation whole{NewCache(), 0};
    while (whole.cache->length() < kLength) {
      const size_t n = std::min<size_t>(512, kLength - whole.cache->length());
      ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*model, {&whole}, {n}));
    }
    Conversation split{NewCache(), 0};
    while (split.cache->length() < kLength) {
      const size_t n = std::min<size_t>(1 + random() % 100, kLength - split.cache->length());
      ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*model, {&split}, {n}));
    }
  }
}

TEST_P(ExactnessTest, BatchesOfConversations) {
  std::mt19937_64 random(Seed());
  std::vector<Conversation> conversations;
  for (size_t t = 0; t < kTexts; ++t) conversations.push_back({NewCache(), t});
  // The same text again: in its own memory and in shared one.
  for (int i = 0; i < 2; ++i) conversations.push_back({NewCache(), 0});
  ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[0], {&conversations[0]}, {77}));
  for (int i = 0; i < 2; ++i) conversations.push_back({Must(conversations[0].cache->Fork()), 0});
  for (int round = 0; round < 30; ++round) {
    std::vector<Conversation*> batch;
    std::vector<size_t> counts;
    for (auto& c : conversations) {
      const size_t n = std::min<size_t>(random() % 50, kLength - c.cache->length());
      if (n == 0) continue;
      batch.push_back(&c);
      counts.push_back(n);
    }
    if (batch.empty()) continue;
    ASSERT_NO_FATAL_FAILURE(
        AppendAndCompare(*models_[static_cast<size_t>(round) % 3], batch, counts));
  }
}

// Cancelling before layer k, or before the output, leaves every layer as it was, for every k and
// many positions.
TEST_P(ExactnessTest, AbortAtEveryLayer) {
  for (size_t start : {0, 1, 31, 32, 60, 64, 100}) {
    Conversation c{NewCache(), 0};
    if (start > 0) {
      ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[0], {&c}, {start}));
    }
    for (int layer = 0; layer <= GetParam().layers; ++layer) {
      for (size_t n : {1, 5, 40, 130, 512}) {
        int polls = 0;
        std::vector<int32_t> other(n, 3);
        const SequenceStep step{.cache = c.cache.get(), .tokens = other, .logit_rows = 0};
        const absl::Status status = models_[0]->Forward({&step, 1}, FloatRows(nullptr, 0, vocab_),
                                                        [&] { return polls++ == layer; });
        ASSERT_EQ(status.code(), absl::StatusCode::kCancelled);
        ASSERT_EQ(c.cache->length(), start);
      }
    }
    ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[0], {&c}, {200}));
  }
}

// A prompt of several batches, cancelled before every layer and the output of every one of them.
TEST_P(ExactnessTest, AbortAtEveryLayerOfEveryBatch) {
  const FloatRows no_logits(nullptr, 0, vocab_);
  const std::vector<int32_t> wrong(1100, 5);  // 512, 512 and 76
  for (size_t start : {0, 45}) {
    Conversation c{NewCache(), 0};
    if (start > 0) {
      ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[0], {&c}, {start}));
    }
    for (int poll = 0; poll < 3 * (GetParam().layers + 1); ++poll) {
      int polls = 0;
      const absl::Status status =
          Prefill(*models_[1], *c.cache, wrong, no_logits, [&] { return polls++ == poll; });
      ASSERT_EQ(status.code(), absl::StatusCode::kCancelled) << poll;
      ASSERT_EQ(c.cache->length(), start);
      // From the greatest length, which is one more after the first round.
      const size_t depth = std::min<size_t>(start, F32Storage::kRewindDepth - (poll > 0 ? 1 : 0));
      ASSERT_TRUE(c.cache->Rewind(start - depth).ok());
      ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[0], {&c}, {depth + 1}));
      ASSERT_TRUE(c.cache->Rewind(start).ok());
    }
    ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[0], {&c}, {300}));
  }
}

// One conversation's part of a batch fails before every layer: none of the others is ahead.
TEST_P(ExactnessTest, AbortOfABatchOfConversations) {
  std::vector<Conversation> all;
  std::vector<Conversation*> batch;
  for (size_t t = 0; t < 4; ++t) all.push_back({NewCache(), t});
  for (Conversation& c : all) batch.push_back(&c);
  ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[0], batch, {30, 64, 95, 1}));
  const std::vector<int32_t> wrong(100, 5);
  for (int layer = 0; layer < GetParam().layers; ++layer) {
    std::vector<SequenceStep> steps;
    for (Conversation& c : all)
      steps.push_back({.cache = c.cache.get(), .tokens = wrong, .logit_rows = 0});
    int polls = 0;
    ASSERT_FALSE(
        models_[1]
            ->Forward(steps, FloatRows(nullptr, 0, vocab_), [&] { return polls++ == layer; })
            .ok());
    ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[0], batch, {1, 2, 3, 4}));
  }
}

TEST_P(ExactnessTest, RewindWithinTheGuaranteedDepthNeverFails) {
  Conversation c{NewCache(), 0};
  std::mt19937_64 random(Seed());
  size_t greatest = 0;
  while (c.cache->length() < 900) {
    ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[0], {&c}, {1 + random() % 40}));
    const size_t length = c.cache->length();
    greatest = std::max(greatest, length);
    ASSERT_LE(c.cache->RewindFloor(), greatest - std::min(greatest, F32Storage::kRewindDepth));
    const size_t depth = std::min<size_t>(random() % (F32Storage::kRewindDepth + 1),
                                          length - c.cache->RewindFloor());
    const size_t position = length - depth;
    ASSERT_TRUE(c.cache->Rewind(position).ok());
    // A second rewind in a row may be refused, but then with no change.
    const absl::Status second =
        c.cache->Rewind(position - std::min<size_t>(position, 1 + random() % 40));
    if (!second.ok()) {
      ASSERT_EQ(c.cache->length(), position);
    }
    ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[0], {&c}, {depth + 1}));
  }
}

// The tightest case for rings: the largest append, at every alignment, then the deepest rewind.
TEST_P(ExactnessTest, RewindAfterTheLargestAppend) {
  constexpr size_t kMost = F32Storage::kMaxAppend;
  constexpr size_t kDepth = F32Storage::kRewindDepth;
  for (size_t start = 97; start < 97 + kKvBlockRows; start += 5) {
    Conversation c{NewCache(), 0};
    ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[1], {&c}, {start}));
    ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[1], {&c}, {kMost}));
    ASSERT_TRUE(c.cache->Rewind(start + kMost - kDepth).ok()) << start;
    ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[1], {&c}, {kDepth}));
    // An aborted append of the same size counts no less.
    const std::vector<int32_t> wrong(kMost, 3);
    const SequenceStep step{.cache = c.cache.get(), .tokens = wrong, .logit_rows = 0};
    int polls = 0;
    ASSERT_FALSE(models_[1]
                     ->Forward({&step, 1}, FloatRows(nullptr, 0, vocab_),
                               [&] { return ++polls == GetParam().layers; })
                     .ok());
    ASSERT_TRUE(c.cache->Rewind(start + kMost - kDepth).ok()) << start;
    ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[1], {&c}, {kDepth}));
  }
}

// A prompt of several steps keeps nothing between them that only rewinds need, and its end can be
// rewound all the same, however short the last step is.
TEST_P(ExactnessTest, APromptOfSeveralStepsCanBeRewound) {
  constexpr size_t kStep = F32Storage::kMaxAppend;
  constexpr size_t kDepth = F32Storage::kRewindDepth;
  std::vector<float> logits(vocab_);
  for (const size_t more : {1, 15, 31, 32, 33, 35, 36, 60, 64, 65, 100}) {
    Conversation c{NewCache(), 0};
    const auto prompt = absl::MakeConstSpan(texts_[0]).first(kStep + more);
    ASSERT_TRUE(Prefill(*models_[0], *c.cache, prompt, FloatRows(logits.data(), 1, vocab_)).ok());
    ASSERT_EQ(BitsOf(logits.data(), vocab_), expected_[0][prompt.size() - 1]);
    ASSERT_TRUE(c.cache->Rewind(prompt.size() - kDepth).ok()) << more;
    ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[0], {&c}, {kDepth}));
  }
}

TEST_P(ExactnessTest, APromptOfSeveralStepsNeedsNoMemoryForRewindsBetweenThem) {
  const auto tokens = absl::MakeConstSpan(texts_[0]).first(1100);
  // The most memory at a time, where so many tokens at a time are a prompt.
  const auto most_bytes = [&](size_t prompt) {
    const auto pool = std::make_shared<BlockPool>();
    const auto cache = NewCache(pool);
    size_t most = 0;
    const auto watch = [&] {
      most = std::max(most, pool->used_bytes());
      return false;
    };
    for (size_t at = 0; at < tokens.size(); at += prompt) {
      const auto part = tokens.subspan(at, prompt);
      EXPECT_TRUE(Prefill(*models_[0], *cache, part, FloatRows(nullptr, 0, vocab_), watch).ok());
    }
    return most;
  };
  const size_t whole = most_bytes(tokens.size()), steps = most_bytes(F32Storage::kMaxAppend);
  // Layers that need more memory during an append can do with less before it.
  if (models_[0]->PlanCache(GetParam().type).append > 0) {
    EXPECT_LT(whole, steps);
  } else {
    EXPECT_LE(whole, steps);
  }
}

// Each way to come to a length, then two rewinds in a row that together have the guaranteed depth,
// and two more from where that leads.
TEST_P(ExactnessTest, RewindsInARowAfterAnything) {
  std::mt19937_64 random(Seed());
  constexpr size_t kHalf = F32Storage::kRewindDepth / 2;
  Conversation single{NewCache(), 0};  // token by token
  for (size_t length = 1; length < 300; length += length < 140 ? 1 : 13) {
    while (single.cache->length() < length) {
      ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[0], {&single}, {1}));
    }
    std::vector<Conversation> ways;
    ways.reserve(4);                  // they are pointed to
    ways.push_back({NewCache(), 0});  // at once
    ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[0], {&ways[0]}, {length}));
    ways.push_back({Must(single.cache->Fork()), 0});
    for (const Conversation* from : {&single, &ways[0]}) {
      std::vector<uint8_t> bytes;
      MemorySink sink(bytes);
      ASSERT_TRUE(from->cache->Save({}, sink).ok());
      MemorySource source(bytes);
      ways.push_back({NewCache(), 0});
      ASSERT_TRUE(ways.back().cache->Load({}, source).ok());
    }
    std::vector<Conversation*> batch;
    std::vector<size_t> counts;
    for (Conversation& way : ways) {
      KVCache& cache = *way.cache;
      for (int i = 0; i < 2; ++i) {
        const size_t back = std::min(random() % (kHalf + 1), cache.length());
        ASSERT_TRUE(cache.Rewind(cache.length() - back).ok()) << length << " by " << back;
      }
      batch.push_back(&way);
      counts.push_back(1 + random() % 40);
    }
    ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[0], batch, counts));
    for (size_t i = 0; i < ways.size(); ++i) {
      KVCache& cache = *ways[i].cache;
      const size_t floor = cache.RewindFloor();
      ASSERT_TRUE(cache.Rewind(floor + (cache.length() - floor) / 2).ok());
      ASSERT_TRUE(cache.Rewind(cache.RewindFloor()).ok());
      counts[i] = 40;
    }
    ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[0], batch, counts));
  }
}

TEST_P(ExactnessTest, RandomPrograms) { ASSERT_NO_FATAL_FAILURE(RunProgram(Seed(), Steps())); }

}  // namespace
}  // namespace inlay
