// How far a conversation can be rewound is the same at all ranks, whichever of them has had no
// memory for an append, or another view of what forks share.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/byte_stream.h"
#include "cache/block_pool.h"
#include "cache/kv_cache.h"
#include "cache/model_identity.h"
#include "gemma_like/engine.h"
#include "gemma_like/load_model.h"
#include "gemma_like/ranks/rank_leader.h"
#include "tests/gemma_like/counting_engine.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/gemma_like/ranks/ranked_file.h"
#include "tests/gemma_like/ranks/thread_ranks.h"
#include "tests/must.h"

namespace inlay {
namespace {

std::vector<int32_t> Text(size_t length) {
  std::vector<int32_t> text;
  for (size_t i = 0; i < length; ++i) text.push_back(static_cast<int32_t>(3 + i * i % 50));
  return text;
}

// The status of the next tokens of the text, none of whose logits are wanted.
absl::Status TryAppend(Engine& engine, KVCache& cache, size_t count,
                       const CancelCheck& cancel = nullptr) {
  const std::vector<int32_t> text = Text(cache.length() + count);
  const SequenceStep step{.cache = &cache,
                          .tokens = absl::MakeConstSpan(text).last(count),
                          .logit_rows = 0,
                          .cancel = cancel};
  return engine.Forward({&step, 1}, FloatRows(nullptr, 0, engine.info().vocab_size));
}

// That no rank has more of it than its tokens, with which all go on.
void ExpectGoesOn(Engine& engine, KVCache& cache) {
  const auto fresh = Must(engine.CreateCache({}));
  ASSERT_TRUE(TryAppend(engine, *fresh, cache.length()).ok());
  EXPECT_EQ(Append(engine, cache, std::vector<int32_t>{7}),
            Append(engine, *fresh, std::vector<int32_t>{7}));
}

class RankRewindTest : public ::testing::Test {
 protected:
  // With windows, of which so long an append overwrites rows that a rewind beyond the guaranteed
  // depth reads: of a failed one at those ranks alone that had memory for it.
  static constexpr size_t kLength = 193, kMore = 512;

  std::unique_ptr<KVCache> Conversation(std::shared_ptr<BlockPool> pool) {
    auto cache = Must(engine().CreateCache({.pool = std::move(pool)}));
    EXPECT_TRUE(TryAppend(engine(), *cache, kLength).ok());
    return cache;
  }
  // The floor where every rank has had memory for the append and has dropped it.
  size_t FloorAfterAppend() {
    const auto cache = Conversation(nullptr);
    EXPECT_EQ(cache->RewindFloor(), 0u);
    EXPECT_EQ(TryAppend(engine(), *cache, kMore, [] { return true; }).code(),
              absl::StatusCode::kCancelled);
    return cache->RewindFloor();
  }
  // Where the append has failed at the first rank, for whose pool `memory` bytes more were too few.
  std::unique_ptr<KVCache> WithoutMemoryFor(size_t memory) {
    const size_t used = Conversation(nullptr)->allocated_bytes();
    auto cache =
        Conversation(std::make_shared<BlockPool>(BlockPool::Options{.limit_bytes = used + memory}));
    EXPECT_EQ(TryAppend(engine(), *cache, kMore).code(), absl::StatusCode::kResourceExhausted);
    return cache;
  }

  Engine& engine() { return *ranked_.model()->engine; }

  const RankedFile ranked_{3, "tests/golden/models/gemma3-tiny-q4_0.gguf"};
};

TEST_F(RankRewindTest, WhatFailsAtOneRankRaisesTheFloorOfAll) {
  const size_t floor = FloorAfterAppend();
  ASSERT_GT(floor, 100u);
  // The first rank finds memory for no block, for some of a layer, for some of the layers.
  for (size_t kib = 0; kib < 512; kib += 128) {
    SCOPED_TRACE(kib);
    const auto cache = WithoutMemoryFor(kib << 10);
    EXPECT_EQ(cache->length(), kLength);
    EXPECT_EQ(cache->RewindFloor(), floor);
    EXPECT_EQ(cache->Rewind(floor - 1).code(), absl::StatusCode::kOutOfRange);
    ExpectGoesOn(engine(), *cache);
    ASSERT_TRUE(cache->Rewind(floor).ok());
    ExpectGoesOn(engine(), *cache);
  }
}

TEST_F(RankRewindTest, ForksAndSavedConversationsAgreeToo) {
  const auto cache = WithoutMemoryFor(0);
  const size_t floor = cache->RewindFloor();
  const auto fork = Must(cache->Fork());
  EXPECT_EQ(fork->RewindFloor(), floor);
  auto other = Must(engine().CreateCache({.pool = cache->shared_pool()}));
  ASSERT_TRUE(other->Restore(std::move(*fork)).ok());
  EXPECT_EQ(other->Rewind(floor - 1).code(), absl::StatusCode::kOutOfRange);
  ASSERT_TRUE(other->Rewind(floor).ok());
  // The ranks do this before the next batch, for which the pool has no memory.
  const auto fresh = Must(engine().CreateCache({}));
  ASSERT_TRUE(TryAppend(engine(), *fresh, 1).ok());

  // Now each rank saves rows for a rewind by the guaranteed depth, as far as it has them.
  ASSERT_TRUE(cache->Rewind(floor).ok());
  std::vector<uint8_t> saved;
  MemorySink sink(saved);
  ASSERT_TRUE(cache->Save({}, sink).ok());
  const auto loaded = Must(engine().CreateCache({}));
  MemorySource source(saved);
  ASSERT_EQ(Must(loaded->Load({}, source)).difference, "");
  EXPECT_EQ(loaded->length(), floor);
  EXPECT_EQ(loaded->RewindFloor(), floor);
  EXPECT_EQ(loaded->Rewind(floor - 1).code(), absl::StatusCode::kOutOfRange);
  ExpectGoesOn(engine(), *loaded);
}

// A fork that is dropped while an append to its origin begins is gone at the first rank, and still
// there at the others, where inputs of convolutions move to another ring then.
TEST(RankRewind, AForkThatIsDroppedMeanwhile) {
  std::unique_ptr<Engine> inner;
  std::function<void()> before = [] {};
  const ModelLoader load = [](const std::string& path, const EngineOptions& options) {
    return LoadModel(path, options);
  };
  const ModelLoader load_first = [&](const std::string& path,
                                     const EngineOptions& options) -> absl::StatusOr<LoadedModel> {
    LoadedModel model = Must(LoadModel(path, options));
    inner = std::move(model.engine);
    auto watched = std::make_unique<CountingEngine>(*inner);
    watched->identity = Must(inner->Identity());
    watched->before_forward = [&] { before(); };
    model.engine = std::move(watched);
    return model;
  };
  const ServedThreadRanks ranks(2, load);
  const auto leader = std::make_shared<RankLeader>(ranks.First(), load_first);
  const LoadedModel model =
      Must(leader->LoadModel("tests/golden/models/granite4h-tiny-q4_k_m.gguf", {}));
  Engine& engine = *model.engine;

  const auto cache = Must(engine.CreateCache({}));
  for (const size_t count : {100, 10}) ASSERT_TRUE(TryAppend(engine, *cache, count).ok());
  auto fork = Must(cache->Fork());
  before = [&] { fork = nullptr; };
  ASSERT_TRUE(TryAppend(engine, *cache, 1).ok());
  before = [] {};
  ASSERT_EQ(fork, nullptr);
  const size_t floor = cache->RewindFloor();
  EXPECT_GT(floor, 70u);
  EXPECT_EQ(cache->Rewind(70).code(), absl::StatusCode::kOutOfRange);
  ASSERT_TRUE(cache->Rewind(floor).ok());
  ExpectGoesOn(engine, *cache);
}

}  // namespace
}  // namespace inlay
