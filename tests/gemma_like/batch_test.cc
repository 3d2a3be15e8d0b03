// Batches of several conversations: one that fails leaves the others alone, and neither a thread
// that stalls nor the caller's float environment changes a bit.
#include <algorithm>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gemma_like/engine.h"
#include "ops/team.h"
#include "tests/gemma_like/family_fixture.h"

namespace inlay {
namespace {

class BatchTest : public FamilyTest {
 protected:
  // The first four texts, at lengths inside and at the borders of blocks and chunks.
  void Start() {
    for (size_t t = 0; t < 4; ++t) all_.push_back({NewCache(), t});
    for (Conversation& c : all_) batch_.push_back(&c);
    ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[0], batch_, {30, 64, 95, 1}));
  }

  std::vector<Conversation> all_;
  std::vector<Conversation*> batch_;
};
INSTANTIATE_TEST_SUITE_P(Families, BatchTest, ::testing::ValuesIn(AllFamilies()),
                         [](const auto& info) { return info.param.name; });

// Each segment in turn, before each layer: the others' bits are those of a run without it.
TEST_P(BatchTest, ACancelledSegmentLeavesTheBatchAlone) {
  ASSERT_NO_FATAL_FAILURE(Start());
  for (int layer = 0; layer < GetParam().layers; ++layer) {
    for (size_t bad = 0; bad < batch_.size(); ++bad) {
      std::vector<int> cancel_before(batch_.size(), kNever);
      cancel_before[bad] = layer;
      Engine& model = *models_[(static_cast<size_t>(layer) + bad) % 3];
      ASSERT_NO_FATAL_FAILURE(AppendAndCompare(model, batch_, {2, 7, 1, 3}, cancel_before))
          << "layer " << layer << ", segment " << bad;
    }
  }
  ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[1], batch_, {40, 40, 40, 40}));
}

TEST_P(BatchTest, SegmentsAreCancelledOneAfterTheOther) {
  ASSERT_NO_FATAL_FAILURE(Start());
  ASSERT_NO_FATAL_FAILURE(
      AppendAndCompare(*models_[1], batch_, {5, 40, 1, 3}, {kNever, 0, kNever, 1}));
  ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[1], batch_, {5, 40, 1, 3}, {2, 2, 1, 0}));
  ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[2], batch_, {5, 40, 1, 3}));
}

// Segments that cannot begin: too long for their cache, or without memory.
TEST_P(BatchTest, ASegmentThatCannotBeginLeavesTheBatchAlone) {
  for (size_t bad = 0; bad < 3; ++bad) {
    std::vector<std::unique_ptr<KVCache>> caches;
    for (size_t i = 0; i < 3; ++i) {
      caches.push_back(NewCache(nullptr, i == bad ? size_t{4} : kLength));
    }
    std::vector<SequenceStep> steps;
    for (const auto& cache : caches) {
      steps.push_back({.cache = cache.get(), .tokens = absl::MakeConstSpan(texts_[0]).first(5)});
    }
    std::vector<float> logits(3 * vocab_);
    const FloatRows rows(logits.data(), 3, vocab_);
    std::vector<absl::Status> outcomes(3);
    ASSERT_TRUE(models_[1]->Forward(steps, rows, nullptr, absl::MakeSpan(outcomes)).ok());
    for (size_t i = 0; i < 3; ++i) {
      ASSERT_EQ(outcomes[i].ok(), i != bad) << outcomes[i];
      ASSERT_EQ(caches[i]->length(), i == bad ? 0u : 5u);
      if (i != bad) {
        ASSERT_EQ(BitsOf(rows.Row(i), vocab_), expected_[0][4]);
      }
    }
    // Without outcomes the batch is one thing.
    ASSERT_TRUE(caches[(bad + 1) % 3]->Rewind(0).ok());
    ASSERT_TRUE(caches[(bad + 2) % 3]->Rewind(0).ok());
    ASSERT_EQ(models_[1]->Forward(steps, rows).code(), outcomes[bad].code());
    for (const auto& cache : caches) ASSERT_EQ(cache->length(), 0u);
  }
}

TEST_P(BatchTest, ABatchThatFailsWholeIsFine) {
  ASSERT_NO_FATAL_FAILURE(Start());
  ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[1], batch_, {5, 6, 7, 8}, {1, 1, 1, 1}));
  ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[1], batch_, {5, 6, 7, 8}));
}

// Two models of one team, of which every thread stalls now and then.
TEST_P(BatchTest, StallingThreadsChangeNoBit) {
  const auto team = std::make_shared<Team>(4);
  std::vector<std::unique_ptr<Engine>> models;
  for (int i = 0; i < 2; ++i) {
    auto model = GetParam().config.load(file_, {.team = team});
    ASSERT_TRUE(model.ok()) << model.status();
    models.push_back(*std::move(model));
  }
  std::atomic<uint32_t> chunks = 0, stalls = 0;
  const auto stall = [&](size_t thread) {
    const uint32_t chunk = ++chunks;
    if (chunk % 97 == 5 * thread) {
      std::this_thread::sleep_for(std::chrono::microseconds(chunk % 3 * 300));
      ++stalls;
    }
  };
  team->Set({.before_chunk = stall, .chunks = 9});
  ASSERT_NO_FATAL_FAILURE(Start());
  for (size_t round = 0; round < 12; ++round) {
    ASSERT_NO_FATAL_FAILURE(
        AppendAndCompare(*models[round % 2], batch_, {1 + round, 1, 33 - round, 2}));
  }
  EXPECT_GT(stalls, 10u);
  team->Set({});
}

TEST_P(BatchTest, TheCallersFloatEnvironmentChangesNoBit) {
  ASSERT_NO_FATAL_FAILURE(Start());
  for (const auto& model : models_) {
    std::fesetround(FE_UPWARD);
#if defined(__x86_64__)
    constexpr uint32_t kFlushAndDaz = 0x8040;
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | kFlushAndDaz);
#endif
    AppendAndCompare(*model, batch_, {3, 20, 1, 40});
    EXPECT_EQ(std::fegetround(), FE_UPWARD);
#if defined(__x86_64__)
    EXPECT_EQ(__builtin_ia32_stmxcsr() & kFlushAndDaz, kFlushAndDaz);
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() & ~kFlushAndDaz);
#endif
    std::fesetround(FE_TONEAREST);
    ASSERT_FALSE(HasFatalFailure());
  }
}

}  // namespace
}  // namespace inlay
