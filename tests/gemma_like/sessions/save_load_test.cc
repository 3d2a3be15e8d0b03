// Saved conversations: what follows a load has the bits of a straight run, and whatever is wrong
// with the bytes, the conversation stays as it was.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/byte_stream.h"
#include "base/xxh64.h"
#include "cache/block_pool.h"
#include "cache/chunk_log.h"
#include "cache/kv_cache.h"
#include "cache/layers/mamba2.h"
#include "cache/model_identity.h"
#include "cache/serialize.h"
#include "gemma_like/generation/generate.h"
#include "gemma_like/sessions/session.h"
#include "io/store/state_store_memory.h"
#include "ops/ssd.h"
#include "tests/gemma_like/counting_engine.h"
#include "tests/gemma_like/family_fixture.h"
#include "tests/must.h"

namespace inlay {
namespace {

const ModelIdentity kModel = {
    .weights_hash = 0x1234, .numerics_version = 7, .instruction_set = "AVX2"};
constexpr size_t kDepth = 32;  // the guaranteed rewind depth

using Bytes = std::vector<uint8_t>;

Bytes Save(const KVCache& cache, const ModelIdentity& model = kModel) {
  Bytes bytes;
  MemorySink sink(bytes);
  EXPECT_TRUE(cache.Save(model, sink).ok());
  return bytes;
}

// FailedPrecondition, with the difference, where the rows cannot be taken over.
absl::Status Load(KVCache& cache, const Bytes& bytes, const ModelIdentity& model = kModel) {
  MemorySource source(bytes);
  const absl::StatusOr<LoadOutcome> outcome = cache.Load(model, source);
  if (!outcome.ok() || outcome->difference.empty()) return outcome.status();
  return absl::FailedPreconditionError(outcome->difference);
}

// The save as version `version` of the format had it, 1 or 2: a shorter header, and layers that
// nobody reads any more.
Bytes InOldVersion(const Bytes& saved, uint8_t version, size_t length) {
  constexpr size_t kOldHeader = kSavedHeaderBytes - 8 - 4 - kSavedTargetBytes;
  Bytes old(saved.begin(), saved.begin() + kOldHeader);
  old[8] = version;
  const auto end_section = [&](size_t begin, uint64_t seed) {
    const uint64_t digest = Xxh64Of(old.data() + begin, old.size() - begin, seed);
    const auto* bytes = reinterpret_cast<const uint8_t*>(&digest);
    old.insert(old.end(), bytes, bytes + sizeof(digest));
    return digest;
  };
  const uint64_t digest = end_section(0, 0);
  const auto tokens = saved.begin() + kSavedHeaderBytes;
  old.insert(old.end(), tokens, tokens + static_cast<ptrdiff_t>(length * sizeof(int32_t)));
  end_section(kOldHeader + 8, digest);
  old.insert(old.end(), 100, 0x5a);
  return old;
}

class SaveLoadTest : public FamilyTest {
 protected:
  // A type of rows that the family's is not.
  static KvType OtherType() {
    return GetParam().type == KvType::kF16 ? KvType::kF32 : KvType::kF16;
  }
  Conversation AtLength(size_t length, size_t text = 0) {
    Conversation c{NewCache(), text};
    while (c.cache->length() < length) {
      AppendAndCompare(*models_[1], {&c}, {std::min<size_t>(500, length - c.cache->length())});
    }
    return c;
  }

  void ExpectRefused(KVCache& cache, const Bytes& bytes, absl::StatusCode code,
                     absl::string_view says) {
    const absl::Status status = Load(cache, bytes);
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), says)) << status;
  }
};

INSTANTIATE_TEST_SUITE_P(Families, SaveLoadTest, ::testing::ValuesIn(AllFamilies()),
                         [](const auto& info) { return info.param.name; });

// Every position of the first blocks and chunks, then some where rings have been overwritten.
TEST_P(SaveLoadTest, AtEveryPosition) {
  std::mt19937_64 random(Seed());
  Conversation c{NewCache(), 0};
  while (c.cache->length() < kLength - 100) {
    const size_t length = c.cache->length();
    const Bytes saved = Save(*c.cache);
    Conversation loaded{NewCache(), 0};
    ASSERT_TRUE(Load(*loaded.cache, saved).ok());
    ASSERT_EQ(loaded.cache->length(), length);
    ASSERT_EQ(loaded.cache->tokens(), c.cache->tokens());
    ASSERT_EQ(Save(*loaded.cache), saved);

    // Nothing but new tokens is computed: the past is poison where it was not loaded.
    Conversation rewound{Must(loaded.cache->Fork()), 0};
    ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[0], {&loaded}, {1 + random() % 60}));
    // The guaranteed depth holds for what was loaded too.
    const size_t depth = std::min(length, length % 3 == 0 ? kDepth : random() % (kDepth + 1));
    ASSERT_TRUE(rewound.cache->Rewind(length - depth).ok()) << length << " by " << depth;
    Conversation again{NewCache(), 0};
    ASSERT_TRUE(Load(*again.cache, Save(*rewound.cache)).ok());
    ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[0], {&rewound, &again}, {depth + 3, 40}));

    ASSERT_NO_FATAL_FAILURE(
        AppendAndCompare(*models_[0], {&c}, {length < 140 ? 1 : 1 + random() % 50}));
  }
}

TEST_P(SaveLoadTest, ReplacesWhatWasThere) {
  const Bytes saved = Save(*AtLength(100).cache);
  Conversation c = AtLength(700, 1);
  ASSERT_TRUE(Load(*c.cache, saved).ok());
  c.text = 0;
  EXPECT_EQ(c.cache->length(), 100u);
  ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[0], {&c}, {500}));
}

// The types that no family here has.
TEST_P(SaveLoadTest, OtherRowTypes) {
  for (KvType type : {KvType::kF16, KvType::kBF16, KvType::kQ8}) {
    std::vector<std::unique_ptr<KVCache>> caches;
    for (int i = 0; i < 2; ++i)
      caches.push_back(Must(models_[0]->CreateCache({.max_length = kLength}, type)));
    std::vector<float> a(vocab_), b(vocab_);
    const auto append = [&](KVCache& cache, size_t count, std::vector<float>& logits) {
      const SequenceStep step{
          .cache = &cache, .tokens = absl::MakeConstSpan(texts_[0]).subspan(cache.length(), count)};
      ASSERT_TRUE(models_[0]->Forward({&step, 1}, FloatRows(logits.data(), 1, vocab_)).ok());
    };
    append(*caches[0], 333, a);
    ASSERT_TRUE(Load(*caches[1], Save(*caches[0])).ok());
    append(*caches[0], 50, a);
    append(*caches[1], 50, b);
    EXPECT_EQ(a, b);
  }
}

// By tokens that the engine was given.
TEST_P(SaveLoadTest, OnlyNewTokensAreComputedAfterALoad) {
  CountingEngine engine(*models_[0]);
  MemoryStore store;
  for (size_t length : {1, 31, 32, 64, 100, 700}) {
    Conversation c = AtLength(length);
    ASSERT_TRUE(SaveSession(engine, *c.cache, **store.Put("talk")).ok());
    Conversation loaded{NewCache(), 0};
    ASSERT_TRUE(LoadSession(engine, **store.Get("talk"), *loaded.cache).ok());
    EXPECT_EQ(engine.TakeCount(), 0u);
    ASSERT_NO_FATAL_FAILURE(AppendAndCompare(engine, {&loaded}, {17}));
    EXPECT_EQ(engine.TakeCount(), 17u);
    // Nor does a rewind compute anything.
    ASSERT_TRUE(loaded.cache->Rewind(length + 17 - std::min<size_t>(length, kDepth)).ok());
    EXPECT_EQ(engine.TakeCount(), 0u);
    ASSERT_NO_FATAL_FAILURE(AppendAndCompare(engine, {&loaded}, {1}));
    EXPECT_EQ(engine.TakeCount(), 1u);
  }
}

// Of another model, instruction set, type of rows or version of the format: computed again from
// its tokens, with the bits of a straight run.
TEST_P(SaveLoadTest, ComputesAgainWhatItCannotTakeOver) {
  CountingEngine engine(*models_[0]);
  constexpr size_t kTokens = 600;  // more than a batch
  Conversation c = AtLength(kTokens);
  const Bytes saved = Save(*c.cache, engine.identity);
  ModelIdentity elsewhere = engine.identity;
  elsewhere.instruction_set = "AVX3";
  const auto other_rows = Must(models_[0]->CreateCache({.max_length = kLength}, OtherType()));
  const auto tokens = absl::MakeConstSpan(texts_[0]).first(kTokens);
  ASSERT_TRUE(Prefill(*models_[0], *other_rows, tokens, FloatRows(nullptr, 0, vocab_)).ok());
  const std::pair<Bytes, absl::string_view> cases[] = {
      {InOldVersion(saved, 1, kTokens), "it has version 1 of the format, not 3"},
      {InOldVersion(saved, 2, kTokens), "it has version 2 of the format, not 3"},
      {Save(*c.cache, elsewhere), "it was computed on AVX3, not AVX2"},
      {Save(*other_rows, engine.identity), "its rows are "},
  };
  for (const auto& [bytes, expected] : cases) {
    Conversation into = AtLength(40, 1);
    const Bytes before = Save(*into.cache);
    engine.TakeCount();

    MemorySource refused(bytes);
    const absl::Status status = LoadSession(engine, refused, *into.cache, {.exact = true});
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), expected)) << status;
    EXPECT_EQ(engine.TakeCount(), 0u);

    size_t asked = 0;
    MemorySource cancelled(bytes);
    EXPECT_TRUE(absl::IsCancelled(
        LoadSession(engine, cancelled, *into.cache, {.cancel = [&] { return ++asked > 3; }})));
    EXPECT_EQ(Save(*into.cache), before);

    engine.TakeCount();
    std::string why;
    size_t count = 0;
    MemorySource source(bytes);
    ASSERT_TRUE(LoadSession(engine, source, *into.cache,
                            {.on_recompute =
                                 [&](auto w, size_t n) {
                                   why = std::string(w);
                                   count = n;
                                 }})
                    .ok());
    EXPECT_TRUE(absl::StrContains(why, expected)) << why;
    EXPECT_EQ(count, kTokens);
    EXPECT_EQ(engine.TakeCount(), kTokens);
    into.text = 0;
    ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[0], {&into}, {60}));
  }
}

// Bytes that are not what Save wrote, in every bit that matters.
TEST_P(SaveLoadTest, EveryWrongBitIsFound) {
  Conversation c = AtLength(75, 1);
  const Bytes before = Save(*c.cache);
  Bytes saved = Save(*AtLength(90).cache);
  std::mt19937_64 random(Seed());
  const auto flip_and_try = [&](size_t bit) {
    saved[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    const absl::Status status = Load(*c.cache, saved);
    ASSERT_FALSE(status.ok()) << "bit " << bit;
    ASSERT_FALSE(status.message().empty());
    saved[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
  };
  for (size_t bit = 0; bit < kSavedHeaderBytes * 8; ++bit) {
    ASSERT_NO_FATAL_FAILURE(flip_and_try(bit));
  }
  for (int i = 0; i < 3000; ++i)
    ASSERT_NO_FATAL_FAILURE(flip_and_try(random() % (saved.size() * 8)));
  EXPECT_EQ(Save(*c.cache), before);
  ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[0], {&c}, {100}));
  EXPECT_TRUE(Load(*c.cache, saved).ok());
}

TEST_P(SaveLoadTest, TruncatedAtEveryByte) {
  Conversation c = AtLength(33, 1);
  const Bytes before = Save(*c.cache);
  const Bytes saved = Save(*AtLength(40).cache);
  for (size_t size = 0; size < saved.size(); ++size) {
    MemorySource source(absl::MakeConstSpan(saved).first(size));
    const absl::Status status = c.cache->Load(kModel, source).status();
    ASSERT_EQ(status.code(), absl::StatusCode::kDataLoss) << size << " " << status;
  }
  EXPECT_EQ(Save(*c.cache), before);
  ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[0], {&c}, {100}));
}

// A source that claims more bytes than it has: the failure comes when layers are read already.
class LyingSource final : public ByteSource {
 public:
  explicit LyingSource(absl::Span<const uint8_t> bytes) : source_(bytes) {}
  absl::Status Read(absl::Span<uint8_t> into) override { return source_.Read(into); }
  uint64_t remaining() const override { return source_.remaining() + (1 << 20); }

 private:
  MemorySource source_;
};

TEST_P(SaveLoadTest, SourceThatFailsAnywhere) {
  Conversation c = AtLength(33, 1);
  const Bytes before = Save(*c.cache);
  const Bytes saved = Save(*AtLength(70).cache);
  for (size_t size = 0; size < saved.size(); size += 1 + size / 97) {
    LyingSource source(absl::MakeConstSpan(saved).first(size));
    ASSERT_FALSE(c.cache->Load(kModel, source).ok()) << size;
  }
  EXPECT_EQ(Save(*c.cache), before);
}

TEST_P(SaveLoadTest, Refusals) {
  using Code = absl::StatusCode;
  Conversation c = AtLength(75, 1);
  const Bytes before = Save(*c.cache);
  const Bytes saved = Save(*AtLength(90).cache);
  const auto refused = [&](const Bytes& bytes, Code code, absl::string_view says) {
    ExpectRefused(*c.cache, bytes, code, says);
  };
  refused({}, Code::kDataLoss, "header");
  refused(Bytes(1000, 'x'), Code::kInvalidArgument, "no saved conversation");
  Bytes changed = saved;
  changed[8] = 4;
  refused(changed, Code::kInvalidArgument, "version 4");
  changed[8] = 0;
  refused(changed, Code::kInvalidArgument, "version 0");
  changed = saved;
  changed.push_back(0);
  refused(changed, Code::kInvalidArgument, "1 bytes follow");
  const auto other_rows = Must(models_[0]->CreateCache({}, OtherType()));
  refused(Save(*other_rows), Code::kFailedPrecondition,
          absl::StrCat("its rows are ", KvTypeName(OtherType()), ", not ",
                       KvTypeName(GetParam().type)));
  ModelIdentity other_model = kModel;
  other_model.weights_hash = 0x99;
  refused(Save(*c.cache, other_model), Code::kFailedPrecondition,
          "it is of weights with the hash 0000000000000099, not 0000000000001234");
  other_model = kModel;
  other_model.numerics_version = 8;
  refused(Save(*c.cache, other_model), Code::kFailedPrecondition,
          "it was computed with version 8 of the numerics, not 7");
  other_model = kModel;
  other_model.instruction_set = "AVX3";
  refused(Save(*c.cache, other_model), Code::kFailedPrecondition,
          "it was computed on AVX3, not AVX2");

  // Two good saves of the same length, the end of one behind the beginning of the other.
  std::unique_ptr<KVCache> another = NewCache();
  const std::vector<int32_t> tokens(90, 3);
  const SequenceStep step{.cache = another.get(), .tokens = tokens, .logit_rows = 0};
  ASSERT_TRUE(models_[0]->Forward({&step, 1}, FloatRows(nullptr, 0, vocab_)).ok());
  const Bytes other = Save(*another);
  ASSERT_EQ(other.size(), saved.size());
  ASSERT_FALSE(other == saved);
  changed = saved;
  std::copy(other.begin() + static_cast<ptrdiff_t>(other.size() / 2), other.end(),
            changed.begin() + static_cast<ptrdiff_t>(other.size() / 2));
  refused(changed, Code::kDataLoss, "checksum");

  std::unique_ptr<KVCache> small = NewCache(nullptr, 89);
  ExpectRefused(*small, saved, Code::kOutOfRange, "90 tokens; the limit here is 89");
  EXPECT_EQ(small->length(), 0u);

  const int32_t token = 1;
  {
    auto transaction = c.cache->Begin({&token, 1});
    ASSERT_TRUE(transaction.ok());
    refused(saved, Code::kFailedPrecondition, "transaction");
    Bytes ignored;
    MemorySink sink(ignored);
    EXPECT_EQ(c.cache->Save(kModel, sink).code(), Code::kFailedPrecondition);
  }
  EXPECT_EQ(Save(*c.cache), before);
}

TEST_P(SaveLoadTest, PoolWithTooLittleLeft) {
  const Bytes saved = Save(*AtLength(200).cache);
  auto unlimited = std::make_shared<BlockPool>();
  auto probe = NewCache(unlimited);
  ASSERT_TRUE(Load(*probe, saved).ok());
  const size_t needed = unlimited->used_bytes();
  for (size_t limit : {size_t{0}, needed / 3, needed / 2, needed - 1}) {
    auto pool = std::make_shared<BlockPool>(BlockPool::Options{.limit_bytes = limit});
    auto cache = NewCache(pool);
    ExpectRefused(*cache, saved, absl::StatusCode::kResourceExhausted, "bytes are in use");
    EXPECT_EQ(cache->length(), 0u);
    EXPECT_EQ(pool->used_bytes(), 0u);
  }
  auto pool = std::make_shared<BlockPool>(BlockPool::Options{.limit_bytes = needed});
  auto cache = NewCache(pool);
  EXPECT_TRUE(Load(*cache, saved).ok());
}

// What is written does not grow beyond the rows that matter.
TEST_P(SaveLoadTest, SizeIsWhatIsLive) {
  const size_t at_700 = Save(*AtLength(700).cache).size();
  const size_t at_1100 = Save(*AtLength(1100).cache).size();
  const std::string name = GetParam().name;
  if (name == "mamba") {
    // 700 is 28 tokens into a chunk, 1100 is 12: 16 rows of the log in each of three layers.
    constexpr SsdShape kShape{.heads = 4, .head_dim = 16, .groups = 2, .state_dim = 8};
    constexpr size_t kRow =
        ChunkLog<SsdLog>::LayoutOf(kShape, StateType::kF32).RowFloats() * sizeof(float);
    EXPECT_EQ(at_700 - at_1100 + 400 * sizeof(int32_t), 3 * 16 * kRow);
  } else if (name == "gemma") {
    // Both windows have the same rows at both lengths: only the full layer grows.
    const size_t row = 2 * 16 * 2 * sizeof(float);  // 2 kv heads of 16, keys and values
    EXPECT_EQ(at_1100 - at_700, 400 * (row + sizeof(int32_t)));
    EXPECT_LT(at_700, (700 + (149 + kDepth) + (19 + kDepth)) * row + 700 * sizeof(int32_t) + 500);
  }
}

std::string Config(const std::string& family) { return family.substr(0, family.find('_')); }

TEST(SaveLoadConfigsTest, ConfigsAndRowTypesDoNotMix) {
  const std::vector<Family> families = AllFamilies();
  for (const Family& from : families) {
    for (const Family& to : families) {
      const Bytes saved = Save(*from.create_cache());
      const absl::Status status = Load(*to.create_cache(), saved);
      EXPECT_EQ(status.ok(), from.name == to.name);
      if (!status.ok()) {
        const bool same_config = Config(from.name) == Config(to.name);
        EXPECT_TRUE(absl::StrContains(
            status.message(),
            same_config ? "its rows are" : "it is of config tiny-" + Config(from.name)))
            << status;
      }
    }
  }
}

}  // namespace
}  // namespace inlay
