// What several ranks save can be loaded by as many: the same bits, all or nothing.
#include "gemma_like/ranks/rank_save.h"

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
#include "cache/kv_cache.h"
#include "cache/model_identity.h"
#include "gemma_like/engine.h"
#include "gemma_like/load_model.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/gemma_like/ranks/ranked_file.h"
#include "tests/must.h"

namespace inlay {
namespace {

using ::testing::HasSubstr;

// Every kind of what a layer stores, between them.
constexpr const char* kFiles[] = {"tests/golden/models/granite4h-tiny-q4_k_m.gguf",
                                  "tests/golden/models/gemma3-tiny-q4_0.gguf"};

class RankSaveTest : public ::testing::TestWithParam<const char*> {
 protected:
  static constexpr size_t kLength = 200;

  static std::vector<int32_t> Text() {
    std::vector<int32_t> text;
    for (size_t i = 0; i < kLength; ++i) text.push_back(static_cast<int32_t>(3 + i * i % 50));
    return text;
  }
  static std::unique_ptr<KVCache> Conversation(Engine& engine) {
    std::unique_ptr<KVCache> cache = Must(engine.CreateCache({}));
    Append(engine, *cache, Text());
    return cache;
  }
  static std::vector<uint8_t> SavedBy(Engine& engine) {
    std::vector<uint8_t> bytes;
    MemorySink sink(bytes);
    EXPECT_TRUE(Conversation(engine)->Save({}, sink).ok());
    return bytes;
  }
  static absl::StatusOr<LoadOutcome> Load(const std::vector<uint8_t>& bytes, KVCache& cache) {
    MemorySource source(bytes);
    return cache.Load({}, source);
  }
  // The logits after one more token.
  static std::vector<float> Next(Engine& engine, KVCache& cache) {
    return Append(engine, cache, std::vector<int32_t>{7});
  }
  // That it still is the short conversation, with which its ranks go on.
  static void ExpectUnchanged(Engine& engine, KVCache& cache) {
    EXPECT_EQ(cache.length(), 3u);
    EXPECT_EQ(Next(engine, cache), Next(engine, *ShortConversation(engine)));
  }
  static std::unique_ptr<KVCache> ShortConversation(Engine& engine) {
    std::unique_ptr<KVCache> cache = Must(engine.CreateCache({}));
    Append(engine, *cache, std::vector<int32_t>{3, 4, 5});
    return cache;
  }
};

INSTANTIATE_TEST_SUITE_P(Files, RankSaveTest, ::testing::ValuesIn(kFiles),
                         [](const auto& info) { return info.index == 0 ? "Hybrid" : "Windows"; });

TEST_P(RankSaveTest, AsManyRanksGoOnAndOthersGetTheTokens) {
  const LoadedModel alone = Must(LoadModel(GetParam()));
  const std::vector<float> expected = Next(*alone.engine, *Conversation(*alone.engine));
  std::vector<std::vector<uint8_t>> saved = {SavedBy(*alone.engine)};
  for (size_t count : {2, 3}) {
    const RankedFile ranked(count, GetParam());
    saved.push_back(SavedBy(*ranked.model()->engine));
  }
  for (size_t count = 1; count <= 3; ++count) {
    const RankedFile ranked(count, GetParam());
    Engine& engine = *ranked.model()->engine;
    for (size_t by = 1; by <= 3; ++by) {
      SCOPED_TRACE(std::to_string(by) + " ranks saved, " + std::to_string(count) + " load");
      const auto cache = ShortConversation(engine);
      const LoadOutcome outcome = Must(Load(saved[by - 1], *cache));
      if (by == count) {
        EXPECT_EQ(outcome.difference, "");
        EXPECT_EQ(cache->tokens(), absl::MakeConstSpan(Text()));
        EXPECT_EQ(Next(engine, *cache), expected);
      } else {
        EXPECT_THAT(outcome.difference, HasSubstr("of another number of ranks"));
        EXPECT_EQ(outcome.tokens, Text());
        ExpectUnchanged(engine, *cache);
      }
    }
  }
}

TEST_P(RankSaveTest, WhatIsDamagedOrCutOffChangesNothing) {
  const RankedFile ranked(2, GetParam());
  Engine& engine = *ranked.model()->engine;
  const std::vector<uint8_t> saved = SavedBy(engine);
  const auto cache = ShortConversation(engine);
  // Of the header, the tokens, the sizes, and the parts of both ranks.
  for (size_t at = 0; at < saved.size(); at += at < 1200 ? 53 : saved.size() / 23) {
    SCOPED_TRACE(at);
    std::vector<uint8_t> bytes = saved;
    bytes[at] ^= 0x10;
    EXPECT_FALSE(Load(bytes, *cache).ok());
    bytes = saved;
    bytes.resize(at);
    EXPECT_FALSE(Load(bytes, *cache).ok());
  }
  std::vector<uint8_t> shorter = saved;
  shorter.pop_back();
  EXPECT_EQ(Load(shorter, *cache).status().code(), absl::StatusCode::kDataLoss);
  std::vector<uint8_t> longer = saved;
  longer.push_back(0);
  EXPECT_EQ(Load(longer, *cache).status().code(), absl::StatusCode::kInvalidArgument);
  std::vector<uint8_t> last = saved;
  last.back() ^= 1;  // the other rank's last checksum
  const absl::Status status = Load(last, *cache).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the checksum is"));
  ExpectUnchanged(engine, *cache);
  EXPECT_EQ(Must(Load(saved, *cache)).difference, "");
}

// Takes, or gives, so many bytes.
class FailingSink final : public ByteSink {
 public:
  explicit FailingSink(size_t bytes) : left_(bytes) {}
  absl::Status Append(absl::Span<const uint8_t> bytes) override {
    if (bytes.size() > left_) return absl::ResourceExhaustedError("the disk is full");
    left_ -= bytes.size();
    return absl::OkStatus();
  }

 private:
  size_t left_;
};

class FailingSource final : public ByteSource {
 public:
  FailingSource(const std::vector<uint8_t>& bytes, size_t most) : source_(bytes), left_(most) {}
  absl::Status Read(absl::Span<uint8_t> into) override {
    if (into.size() > left_) return absl::UnavailableError("the disk is gone");
    left_ -= into.size();
    return source_.Read(into);
  }
  uint64_t remaining() const override { return source_.remaining(); }

 private:
  MemorySource source_;
  size_t left_;
};

TEST_P(RankSaveTest, AFileThatFailsAnywhereIsAnErrorAndRanksGoOn) {
  const RankedFile ranked(3, GetParam());
  Engine& engine = *ranked.model()->engine;
  const std::vector<uint8_t> saved = SavedBy(engine);
  const auto longer = Conversation(engine);
  const auto cache = ShortConversation(engine);
  for (size_t bytes = 0; bytes < saved.size(); bytes += saved.size() / 29) {
    SCOPED_TRACE(bytes);
    FailingSink sink(bytes);
    EXPECT_EQ(longer->Save({}, sink).message(), "the disk is full");
    FailingSource source(saved, bytes);
    const absl::Status status = cache->Load({}, source).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(status.message()), HasSubstr("the disk is gone"));
  }
  ExpectUnchanged(engine, *cache);
  std::vector<uint8_t> again;
  MemorySink sink(again);
  EXPECT_TRUE(longer->Save({}, sink).ok());
  EXPECT_EQ(again, saved);
}

TEST_P(RankSaveTest, WithoutMemoryAtTheFirstRank) {
  const RankedFile ranked(2, GetParam());
  Engine& engine = *ranked.model()->engine;
  const std::vector<uint8_t> saved = SavedBy(engine);
  const size_t least = ShortConversation(engine)->allocated_bytes();
  const size_t both = least + Conversation(engine)->allocated_bytes();
  const auto pool =
      std::make_shared<BlockPool>(BlockPool::Options{.limit_bytes = (least + both) / 2});
  const auto cache = Must(engine.CreateCache({.pool = pool}));
  Append(engine, *cache, std::vector<int32_t>{3, 4, 5});
  EXPECT_EQ(Load(saved, *cache).status().code(), absl::StatusCode::kResourceExhausted);
  ExpectUnchanged(engine, *cache);
}

}  // namespace
}  // namespace inlay
