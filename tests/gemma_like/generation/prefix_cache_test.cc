// Reuse of what other conversations have computed: the cost is known before, and the bits are those
// of a conversation that computed everything itself.
#include "gemma_like/generation/prefix_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "cache/block_pool.h"
#include "cache/hybrid_cache.h"
#include "gemma_like/generation/generate.h"
#include "tests/cache/idle_follower.h"
#include "tests/gemma_like/family_fixture.h"
#include "tests/gemma_like/tiny_configs.h"
#include "tests/must.h"

namespace inlay {
namespace {

constexpr size_t kPlenty = size_t{1} << 30;

// Has no memory to follow a rewind.
class FollowsNoRewind final : public IdleFollower {
 public:
  absl::Status Rewound(const KVCache&, size_t) override {
    return absl::ResourceExhaustedError("there is not enough memory for a rewind");
  }
};

class PrefixCacheTest : public FamilyTest {
 protected:
  // Fills a conversation with the first tokens of a text through the prefix cache and compares the
  // bits of the logits after the last.
  PrefixCost Through(PrefixCache& prefixes, size_t text, size_t length, size_t stride) {
    const auto tokens = absl::MakeConstSpan(texts_[text]).first(length);
    const PrefixCost expected = prefixes.Cost(tokens);
    Conversation c{NewCache(pool_), text};
    std::vector<float> logits(vocab_);
    auto cost = PrefillThrough(prefixes, *models_[0], *c.cache, tokens, stride,
                               FloatRows(logits.data(), 1, vocab_));
    EXPECT_TRUE(cost.ok()) << cost.status();
    EXPECT_EQ(cost->reused, expected.reused);
    EXPECT_EQ(cost->computed, expected.computed);
    EXPECT_EQ(cost->reused + cost->computed, length);
    EXPECT_EQ(c.cache->tokens(), tokens);
    EXPECT_EQ(BitsOf(logits.data(), vocab_), expected_[text][length - 1]);
    AppendAndCompare(*models_[0], {&c}, {std::min<size_t>(70, kLength - length)});
    return *cost;
  }

  std::shared_ptr<BlockPool> pool_ =
      std::make_shared<BlockPool>(BlockPool::Options{.poison = true});
};

INSTANTIATE_TEST_SUITE_P(Families, PrefixCacheTest, ::testing::ValuesIn(AllFamilies()),
                         [](const auto& info) { return info.param.name; });

TEST_P(PrefixCacheTest, WholeBeginnings) {
  PrefixCache prefixes(kPlenty);
  EXPECT_EQ(Through(prefixes, 0, 100, 0).reused, 0u);
  EXPECT_EQ(prefixes.snapshots(), 1u);
  EXPECT_EQ(Through(prefixes, 0, 300, 0).reused, 100u);
  EXPECT_EQ(Through(prefixes, 0, 1000, 0).reused, 300u);
  EXPECT_EQ(Through(prefixes, 0, 301, 0).reused, 300u);
  // All of it is known, but the last token's logits are wanted.
  EXPECT_EQ(Through(prefixes, 0, 300, 0).reused, 299u);
  EXPECT_EQ(prefixes.Cost({}).reused, 0u);
}

TEST_P(PrefixCacheTest, TheLatestIsVisitedFirst) {
  PrefixCache prefixes(kPlenty);
  for (const size_t length : {100, 300}) Through(prefixes, 0, length, 0);
  Conversation other{NewCache(pool_), 1};
  AppendAndCompare(*models_[0], {&other}, {50});
  ASSERT_TRUE(prefixes.Insert(*other.cache, /*owner=*/7));
  std::vector<std::pair<int32_t, size_t>> visited;
  prefixes.Visit([&](const KVCache& snapshot, int32_t owner) {
    visited.emplace_back(owner, snapshot.length());
  });
  EXPECT_EQ(visited, (std::vector<std::pair<int32_t, size_t>>{{7, 50}, {0, 300}, {0, 100}}));
}

// A conversation that leaves a known one in the middle: by rewinding it where that is exact, else
// from the nearest snapshot before.
TEST_P(PrefixCacheTest, NearestSnapshotAndReplay) {
  PrefixCache prefixes(kPlenty);
  Through(prefixes, 0, 1000, 128);
  EXPECT_EQ(prefixes.snapshots(), 8u);
  for (size_t text = 1; text < kTexts; ++text) {
    const size_t shared = std::min<size_t>(shared_[text], 1000);
    if (shared == 1000) continue;
    const size_t reused = Through(prefixes, text, shared + 50, 0).reused;
    EXPECT_LE(reused, shared);
    EXPECT_GT(reused + 128, shared) << "never more than a stride to replay";
  }
}

TEST_P(PrefixCacheTest, ATailIsWhatAnEarlierPromptHadAfterThePlace) {
  PrefixCache prefixes(kPlenty);
  Through(prefixes, 0, 300, 0);
  std::vector<int32_t> tokens(texts_[0].begin(), texts_[0].begin() + 200);
  tokens.push_back((texts_[0][200] + 1) % static_cast<int32_t>(vocab_));
  EXPECT_EQ(prefixes.Cost(tokens).shared, 200u);
  EXPECT_EQ(prefixes.Cost(tokens).tail, 100u);
  EXPECT_FALSE(prefixes.Cost(tokens).at_tail);
  EXPECT_EQ(prefixes.Cost(absl::MakeConstSpan(texts_[0]).first(400)).tail, 0u)
      << "goes on from all of it";

  Conversation before{NewCache(pool_), 0};
  AppendAndCompare(*models_[0], {&before}, {200});
  ASSERT_TRUE(prefixes.Insert(*before.cache, 0, {.rewind = 0, .prompt = 300, .before_tail = true}));
  EXPECT_EQ(prefixes.Cost(tokens).reused, 200u);
  EXPECT_EQ(prefixes.Cost(tokens).tail, 100u);
  EXPECT_TRUE(prefixes.Cost(tokens).at_tail);
  EXPECT_FALSE(prefixes.Cost(absl::MakeConstSpan(texts_[0]).first(400)).at_tail);
}

TEST_P(PrefixCacheTest, RandomUse) {
  std::mt19937_64 random(Seed());
  PrefixCache prefixes(size_t{1} << 20);
  size_t reused = 0, computed = 0;
  for (int i = 0; i < 120; ++i) {
    const size_t text = random() % kTexts;
    const size_t length = 1 + random() % (kLength - 1);
    const PrefixCost cost = Through(prefixes, text, length, random() % 2 == 0 ? 0 : 200);
    reused += cost.reused;
    computed += cost.computed;
    ASSERT_LE(prefixes.bytes(), prefixes.budget_bytes());
  }
  EXPECT_GT(reused, computed) << "most of what was asked for had been there before";
}

TEST_P(PrefixCacheTest, OldestGoesFirstAndSharedMemoryCountsOnce) {
  const auto snapshot_of = [&](size_t text, size_t length) {
    Conversation c{NewCache(pool_), text};
    AppendAndCompare(*models_[0], {&c}, {length});
    return std::move(c.cache);
  };
  const auto a = snapshot_of(0, 100);
  const size_t whole = a->allocated_bytes();
  EXPECT_EQ(pool_->used_bytes(), whole);
  size_t size = 0, used = 0;  // of a snapshot, and together with what it is one of
  {
    const auto trimmed = Must(a->Fork());
    ASSERT_TRUE(trimmed->Trim(kEndRewind).ok());
    size = trimmed->allocated_bytes();
    used = pool_->used_bytes();
  }
  EXPECT_LE(size, whole);
  EXPECT_LE(used, whole + size / 4) << "a snapshot copies the last inputs of convolutions alone";
  PrefixCache prefixes(size * 5 / 2);
  EXPECT_TRUE(prefixes.Insert(*a));
  EXPECT_EQ(prefixes.bytes(), size);
  EXPECT_TRUE(prefixes.Insert(*a)) << "the same tokens replace themselves";
  EXPECT_EQ(prefixes.snapshots(), 1u);
  EXPECT_EQ(prefixes.bytes(), size);
  EXPECT_EQ(pool_->used_bytes(), used);

  // Other tokens of the same number, three conversations, room for two of them.
  std::vector<std::unique_ptr<KVCache>> others;
  for (int32_t token : {5, 6}) {
    others.push_back(NewCache(pool_));
    const std::vector<int32_t> tokens(100, token);
    const SequenceStep step{.cache = others.back().get(), .tokens = tokens, .logit_rows = 0};
    ASSERT_TRUE(models_[0]->Forward({&step, 1}, FloatRows(nullptr, 0, vocab_)).ok());
  }
  EXPECT_TRUE(prefixes.Insert(*others[0]));
  EXPECT_EQ(prefixes.snapshots(), 2u);
  EXPECT_NE(prefixes.Take(absl::MakeConstSpan(texts_[0]).first(101)), nullptr);  // used just now
  EXPECT_TRUE(prefixes.Insert(*others[1]));
  EXPECT_EQ(prefixes.snapshots(), 2u);
  EXPECT_EQ(prefixes.Cost(absl::MakeConstSpan(texts_[0]).first(101)).reused, 100u);
  EXPECT_EQ(prefixes.Cost(std::vector<int32_t>(101, 5)).reused, 0u) << "the oldest has gone";
  EXPECT_EQ(prefixes.Cost(std::vector<int32_t>(101, 6)).reused, 100u);

  PrefixCache tiny(size - 1);
  EXPECT_FALSE(tiny.Insert(*a));
  EXPECT_EQ(tiny.bytes(), 0u);

  EXPECT_TRUE(prefixes.DropOldest());
  EXPECT_TRUE(prefixes.DropOldest());
  EXPECT_FALSE(prefixes.DropOldest());
  EXPECT_EQ(prefixes.bytes(), 0u);
}

// Snapshots give way where the pool's limit would refuse somebody.
TEST_P(PrefixCacheTest, SnapshotsGiveWay) {
  size_t most = 0;
  {
    auto unlimited = std::make_shared<BlockPool>();
    auto cache = NewCache(unlimited);
    std::vector<float> logits(vocab_);
    ASSERT_TRUE(Prefill(*models_[0], *cache, absl::MakeConstSpan(texts_[0]).first(1130),
                        FloatRows(logits.data(), 1, vocab_))
                    .ok());
    most = unlimited->used_bytes();
  }
  // Enough for one conversation, with what an append needs beside it, and a little more.
  pool_ =
      std::make_shared<BlockPool>(BlockPool::Options{.limit_bytes = most * 5 / 2, .poison = true});
  PrefixCache prefixes(kPlenty);
  for (size_t text = 0; text < kTexts; ++text) {
    auto cache = NewCache(pool_);
    std::vector<float> logits(vocab_);
    const auto cost =
        PrefillThrough(prefixes, *models_[0], *cache, absl::MakeConstSpan(texts_[text]).first(1130),
                       250, FloatRows(logits.data(), 1, vocab_));
    ASSERT_TRUE(cost.ok()) << cost.status();
    EXPECT_EQ(BitsOf(logits.data(), vocab_), expected_[text][1129]);
  }
  EXPECT_GT(prefixes.snapshots(), 0u);
}

TEST_P(PrefixCacheTest, ASnapshotThatIsNotRewoundIsNotUsed) {
  PrefixCache prefixes(kPlenty);
  Conversation c{NewCache(pool_), 0};
  AppendAndCompare(*models_[0], {&c}, {100});
  c.cache->SetFollower(std::make_shared<FollowsNoRewind>());
  ASSERT_TRUE(prefixes.Insert(*c.cache));
  const auto tokens = absl::MakeConstSpan(texts_[0]);
  EXPECT_NE(prefixes.Take(tokens.first(101)), nullptr);
  ASSERT_EQ(prefixes.Cost(tokens.first(99)).reused, 98u);
  EXPECT_EQ(prefixes.Take(tokens.first(99)), nullptr);
}

// A conversation that takes over a snapshot keeps its own limit.
TEST_P(PrefixCacheTest, LimitsAreNotTakenOver) {
  PrefixCache prefixes(kPlenty);
  Through(prefixes, 0, 100, 0);
  std::vector<float> logits(vocab_);
  const FloatRows row(logits.data(), 1, vocab_);
  auto cache = NewCache(pool_, 150);
  const auto tokens = absl::MakeConstSpan(texts_[0]);
  EXPECT_EQ(
      PrefillThrough(prefixes, *models_[0], *cache, tokens.first(151), 0, row).status().code(),
      absl::StatusCode::kOutOfRange);
  EXPECT_EQ(cache->length(), 0u);
  auto cost = PrefillThrough(prefixes, *models_[0], *cache, tokens.first(150), 0, row);
  ASSERT_TRUE(cost.ok()) << cost.status();
  EXPECT_EQ(cost->reused, 100u);
  EXPECT_EQ(cache->max_length(), 150u);
  EXPECT_EQ(cache->Begin(tokens.subspan(150, 1)).status().code(), absl::StatusCode::kOutOfRange);

  // Now the snapshot is the smaller one.
  auto large = NewCache(pool_);
  ASSERT_TRUE(PrefillThrough(prefixes, *models_[0], *large, tokens.first(200), 0, row).ok());
  EXPECT_EQ(large->max_length(), kLength);
}

TEST_P(PrefixCacheTest, ErrorsLeaveTheConversationEmpty) {
  PrefixCache prefixes(kPlenty);
  Through(prefixes, 0, 100, 0);
  std::vector<int32_t> tokens(texts_[0].begin(), texts_[0].begin() + 200);
  std::vector<float> logits(vocab_);
  const FloatRows row(logits.data(), 1, vocab_);
  auto cache = NewCache(pool_);
  EXPECT_EQ(PrefillThrough(prefixes, *models_[0], *cache, tokens, 0, row, [] { return true; })
                .status()
                .code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(cache->length(), 0u);
  tokens.back() = -1;
  EXPECT_FALSE(PrefillThrough(prefixes, *models_[0], *cache, tokens, 0, row).ok());
  EXPECT_EQ(cache->length(), 0u);
  EXPECT_FALSE(PrefillThrough(prefixes, *models_[0], *cache, {}, 0, row).ok());
}

// A snapshot has a table of all blocks before its end, so none is kept of those on the way that a
// longer one stands for. No rows are needed to see that.
template <class Config>
std::vector<size_t> LengthsKept() {
  PrefixCache prefixes(kPlenty);
  HybridCache<Config> cache = CreateKVCache<Config>();
  std::vector<int32_t> tokens(700);
  std::iota(tokens.begin(), tokens.end(), 0);
  const auto insert = [&](size_t length, const SnapshotPlace& place) {
    const auto next = absl::MakeConstSpan(tokens).first(length).subspan(cache.length());
    Must(cache.Begin(next)).Commit();
    EXPECT_TRUE(prefixes.Insert(cache, 0, place));
  };
  insert(150, {.rewind = 0, .on_the_way = true});
  insert(300, {.rewind = 0, .on_the_way = true});
  insert(400, {.rewind = 0});  // a place of its own
  insert(500, {.rewind = 0, .on_the_way = true});
  EXPECT_TRUE(prefixes.Insert(cache, /*owner=*/1));  // which replaces nothing of another owner
  insert(600, {.rewind = 0, .on_the_way = true});
  insert(602, {});  // from which a rewind leads to 600 in every family

  // Whoever would have gone on from one of them does as well from the one that is left.
  for (const size_t length : {150, 300, 400, 500, 600, 602}) {
    std::vector<int32_t> text(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(length));
    text.push_back(0);
    EXPECT_EQ(prefixes.Cost(text).reused, length);
  }
  std::vector<size_t> kept;
  prefixes.Visit([&](const KVCache& snapshot, int32_t owner) {
    if (owner == 0) kept.push_back(snapshot.length());
  });
  while (prefixes.DropOldest()) {
  }
  EXPECT_EQ(prefixes.bytes(), 0u);
  return kept;
}

// Full attention alone, which goes back to any token.
struct TinyFull : TinyBase {
  static constexpr std::string_view kName = "tiny-full";
  using Layers = Repeat<2, TinyGemma::Full>;
};

TEST(PrefixCache, ALongerSnapshotReplacesThoseOnTheWayThatGoBackNoFurther) {
  EXPECT_EQ(LengthsKept<TinyFull>(), (std::vector<size_t>{602, 400}));
  EXPECT_EQ(LengthsKept<TinyGemma>(), (std::vector<size_t>{602, 500, 400, 300, 150}));
  EXPECT_EQ(LengthsKept<TinyBard>(), (std::vector<size_t>{602, 500, 400, 300, 150}));
}

}  // namespace
}  // namespace inlay
