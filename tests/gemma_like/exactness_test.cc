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

#include "cache/byte_stream.h"
#include "gemma_like/engine.h"
#include "tests/gemma_like/family_fixture.h"

namespace inlay {
namespace {

using ExactnessTest = FamilyTest;

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
  conversations.push_back({NewCache(), 0});  // the same text twice
  for (int round = 0; round < 30; ++round) {
    std::vector<Conversation*> batch;
    std::vector<size_t> counts;
    for (auto& c : conversations) {
      const size_t n = std::min<size_t>(random() % 70, kLength - c.cache->length());
      if (n == 0) continue;
      batch.push_back(&c);
      counts.push_back(n);
    }
    if (batch.empty()) continue;
    ASSERT_NO_FATAL_FAILURE(
        AppendAndCompare(*models_[static_cast<size_t>(round) % 3], batch, counts));
  }
}

// Cancelling before layer k leaves every layer as it was, for every k and many positions.
TEST_P(ExactnessTest, AbortAtEveryLayer) {
  for (size_t start : {0, 1, 31, 32, 60, 64, 100}) {
    Conversation c{NewCache(), 0};
    if (start > 0) {
      ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[0], {&c}, {start}));
    }
    for (int layer = 0; layer < GetParam().layers; ++layer) {
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

TEST_P(ExactnessTest, RewindWithinTheGuaranteedDepthNeverFails) {
  Conversation c{NewCache(), 0};
  std::mt19937_64 random(Seed());
  while (c.cache->length() < 900) {
    ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[0], {&c}, {1 + random() % 40}));
    const size_t depth =
        std::min<size_t>(random() % (F32Storage::kRewindDepth + 1), c.cache->length());
    ASSERT_LE(c.cache->RewindFloor(), c.cache->length() - depth);
    const size_t position = c.cache->length() - depth;
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

TEST_P(ExactnessTest, RandomPrograms) {
  const uint64_t seed = Seed();
  const size_t steps = Steps();
  std::mt19937_64 random(seed);
  SCOPED_TRACE("INLAY_PROPERTY_SEED=" + std::to_string(seed));
  std::vector<Conversation> all;
  all.push_back({NewCache(), 0});
  size_t rewinds = 0, refusals = 0, forks = 0, aborts = 0, loads = 0, appended = 0;
  for (size_t step = 0; step < steps; ++step) {
    Conversation& c = all[random() % all.size()];
    Engine& model = *models_[random() % 3];
    const size_t length = c.cache->length();
    // Where the past is shared, a conversation may go on with another text.
    const size_t other = random() % kTexts;
    const auto agrees_with = [&](size_t a, size_t b) {
      return a == b   ? kLength
             : a == 0 ? shared_[b]
             : b == 0 ? shared_[a]
                      : std::min(shared_[a], shared_[b]);
    };
    if (length <= agrees_with(c.text, other)) c.text = other;
    switch (random() % 9) {
      case 0: {
        const size_t back = random() % 3 == 0 ? random() % (length + 1)
                                              : random() % std::min<size_t>(length + 1, 40);
        const bool possible = length - back >= c.cache->RewindFloor();
        ASSERT_EQ(c.cache->Rewind(length - back).ok(), possible);
        ASSERT_EQ(c.cache->length(), possible ? length - back : length);
        ++(possible ? rewinds : refusals);
        break;
      }
      case 1: {
        Conversation fork{c.cache->Fork(), c.text};
        if (all.size() < 8) {
          all.push_back(std::move(fork));
        } else {
          all[random() % all.size()] = std::move(fork);
        }
        ++forks;
        break;
      }
      case 2: {
        const size_t n = std::min<size_t>(1 + random() % 80, kLength - length);
        if (n == 0) break;
        int polls = static_cast<int>(random() % static_cast<size_t>(GetParam().layers));
        std::vector<int32_t> wrong(n, static_cast<int32_t>(random() % vocab_));
        const SequenceStep part{.cache = c.cache.get(), .tokens = wrong, .logit_rows = 0};
        ASSERT_FALSE(
            model.Forward({&part, 1}, FloatRows(nullptr, 0, vocab_), [&] { return polls-- == 0; })
                .ok());
        ++aborts;
        break;
      }
      case 3: {
        // Into a conversation that has a past of its own, or a new one.
        std::vector<uint8_t> bytes;
        MemorySink sink(bytes);
        ASSERT_TRUE(c.cache->Save(0, sink).ok());
        Conversation& into = all[random() % all.size()];
        if (random() % 2 == 0) into.cache = NewCache();
        const size_t text = c.text;
        MemorySource source(bytes);
        ASSERT_TRUE(into.cache->Load(0, source).ok());
        ASSERT_EQ(into.cache->length(), length);
        into.text = text;
        ++loads;
        break;
      }
      case 4: {
        if (all.size() > 1 && random() % 4 == 0)
          all.erase(all.begin() + static_cast<ptrdiff_t>(random() % all.size()));
        break;
      }
      default: {
        std::vector<Conversation*> batch;
        std::vector<size_t> counts;
        for (Conversation& member : all) {
          if (&member != &c && random() % 3 != 0) continue;
          const size_t most = random() % 6 == 0 ? 90 : 4;
          const size_t n = std::min<size_t>(1 + random() % most, kLength - member.cache->length());
          if (n == 0) {
            member = {NewCache(), random() % kTexts};
            continue;
          }
          batch.push_back(&member);
          counts.push_back(n);
          appended += n;
        }
        if (batch.empty()) break;
        ASSERT_NO_FATAL_FAILURE(AppendAndCompare(model, batch, counts)) << "step " << step;
      }
    }
  }
  std::printf(
      "seed %llu: %zu steps, %zu tokens, %zu rewinds, %zu refused, %zu forks, %zu aborts, "
      "%zu loads\n",
      static_cast<unsigned long long>(seed), steps, appended, rewinds, refusals, forks, aborts,
      loads);
  EXPECT_GT(rewinds, 0u);
  EXPECT_GT(forks, 0u);
  EXPECT_GT(aborts, 0u);
  EXPECT_GT(loads, 0u);
}

}  // namespace
}  // namespace inlay
