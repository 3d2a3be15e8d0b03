// Promises P2 and P3: whatever happened to a conversation before, a token's logits have the bits of
// a straight run.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cache/block_pool.h"
#include "gemma_like/engine.h"
#include "gemma_like/model.h"
#include "gemma_like/synth.h"
#include "tests/gemma_like/tiny_configs.h"

namespace inlay {
namespace {

// Longer than an attention span and many windows, blocks and chunks.
constexpr size_t kLength = 1200;
constexpr size_t kTexts = 6;

// Steps of each random program; INLAY_PROPERTY_STEPS raises it for long runs.
size_t Steps() {
  const char* value = std::getenv("INLAY_PROPERTY_STEPS");
  return value == nullptr ? 1500 : std::strtoul(value, nullptr, 10);
}

uint64_t Seed() {
  const char* value = std::getenv("INLAY_PROPERTY_SEED");
  return value == nullptr ? 1 : std::strtoul(value, nullptr, 10);
}

// Of the bits of a row of logits (FNV-1a).
uint64_t Hash(const float* row, size_t n) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(row);
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < n * sizeof(float); ++i) hash = (hash ^ bytes[i]) * 1099511628211u;
  return hash;
}

// A family's twin, as functions that do not name its type.
struct Family {
  std::string name;
  int layers;
  size_t vocab_size;
  SynthModel (*describe)();
  absl::StatusOr<std::unique_ptr<Engine>> (*load)(std::shared_ptr<const GgufFile> file,
                                                  const EngineOptions& options);
};

template <class Config>
Family MakeFamily() {
  return {.name = std::string(Config::kName.substr(5)),
          .layers = Config::Layers::kSize,
          .vocab_size = Config::kVocabSize,
          .describe = DescribeSynth<Config>,
          .load = [](std::shared_ptr<const GgufFile> file,
                     const EngineOptions& options) -> absl::StatusOr<std::unique_ptr<Engine>> {
            return Model<Config>::Load(std::move(file), options);
          }};
}

// A conversation on one of the texts, which it follows for as long as it has not been rewound.
struct Conversation {
  std::unique_ptr<KVCache> cache;
  size_t text = 0;
};

class ExactnessTest : public ::testing::TestWithParam<Family> {
 protected:
  void SetUp() override {
    const std::string path =
        ::testing::TempDir() + GetParam().name + std::to_string(getpid()) + ".gguf";
    ASSERT_TRUE(WriteSynth(GetParam().describe(), {.type = WeightType::kF32}, 7, path).ok());
    auto opened = GgufFile::Open(path);
    ASSERT_TRUE(opened.ok()) << opened.status();
    auto file = std::make_shared<const GgufFile>(*std::move(opened));
    for (size_t threads : {1, 2, 3}) {
      auto model = GetParam().load(file, {.threads = threads});
      ASSERT_TRUE(model.ok()) << model.status();
      models_.push_back(*std::move(model));
    }
    std::filesystem::remove(path);
    vocab_ = GetParam().vocab_size;
    MakeTexts();
  }

  // Text 0, and others that leave it somewhere; the bits expected after each token come from a run
  // token by token.
  void MakeTexts() {
    std::mt19937_64 random(11);
    for (size_t t = 0; t < kTexts; ++t) {
      const size_t shared = t == 0 ? 0 : random() % kLength;
      std::vector<int32_t> text(t == 0 ? 0 : shared);
      if (t > 0) std::copy_n(texts_[0].begin(), shared, text.begin());
      while (text.size() < kLength) text.push_back(static_cast<int32_t>(random() % vocab_));
      texts_.push_back(text);
      shared_.push_back(shared);
      Conversation run{NewCache(), t};
      std::vector<uint64_t> hashes;
      for (size_t i = 0; i < kLength; ++i) {
        std::vector<float> logits(vocab_);
        const SequenceStep step{.cache = run.cache.get(), .tokens = {&text[i], 1}};
        ASSERT_TRUE(
            models_[0]->Forward({&step, 1}, FloatRows(logits.data(), 1, logits.size())).ok());
        hashes.push_back(Hash(logits.data(), logits.size()));
      }
      expected_.push_back(std::move(hashes));
    }
  }

  // Blocks start as NaN, so that reading a row before it is written shows.
  std::unique_ptr<KVCache> NewCache(KvType type = KvType::kF32) {
    return models_[0]->CreateCache(
        {.max_length = kLength,
         .pool = std::make_shared<BlockPool>(BlockPool::Options{.poison = true})},
        type);
  }

  // Appends counts[i] tokens to each conversation in one batch and compares all logits' bits.
  void AppendAndCompare(Engine& model, std::vector<Conversation*> conversations,
                        std::vector<size_t> counts) {
    std::vector<SequenceStep> steps;
    size_t rows = 0;
    for (size_t i = 0; i < conversations.size(); ++i) {
      const Conversation& c = *conversations[i];
      steps.push_back(
          {.cache = c.cache.get(),
           .tokens = absl::MakeConstSpan(texts_[c.text]).subspan(c.cache->length(), counts[i]),
           .logit_rows = counts[i]});
      rows += counts[i];
    }
    std::vector<float> logits(rows * vocab_);
    const absl::Status status = model.Forward(steps, FloatRows(logits.data(), rows, vocab_));
    ASSERT_TRUE(status.ok()) << status;
    const float* row = logits.data();
    for (size_t i = 0; i < conversations.size(); ++i) {
      const Conversation& c = *conversations[i];
      for (size_t p = c.cache->length() - counts[i]; p < c.cache->length(); ++p, row += vocab_) {
        ASSERT_EQ(Hash(row, vocab_), expected_[c.text][p])
            << "text " << c.text << " position " << p;
      }
    }
  }

  std::vector<std::unique_ptr<Engine>> models_;  // with 1, 2 and 3 threads
  size_t vocab_ = 0;
  std::vector<std::vector<int32_t>> texts_;
  std::vector<std::vector<uint64_t>> expected_;
  std::vector<size_t> shared_;  // how many tokens a text shares with text 0
};

INSTANTIATE_TEST_SUITE_P(Families, ExactnessTest,
                         ::testing::Values(MakeFamily<TinyBard>(), MakeFamily<TinyGemma>(),
                                           MakeFamily<TinyGranite>(), MakeFamily<TinyMamba>()),
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
  size_t rewinds = 0, refusals = 0, forks = 0, aborts = 0, appended = 0;
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
    switch (random() % 8) {
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
  std::printf("seed %llu: %zu steps, %zu tokens, %zu rewinds, %zu refused, %zu forks, %zu aborts\n",
              static_cast<unsigned long long>(seed), steps, appended, rewinds, refusals, forks,
              aborts);
  EXPECT_GT(rewinds, 0u);
  EXPECT_GT(forks, 0u);
  EXPECT_GT(aborts, 0u);
}

}  // namespace
}  // namespace inlay
