// One tiny model per family, texts, and the bits that each token's logits must have: what the tests
// of promises P2 and P3 compare with.
#ifndef INLAY_TESTS_GEMMA_LIKE_FAMILY_FIXTURE_H_
#define INLAY_TESTS_GEMMA_LIKE_FAMILY_FIXTURE_H_

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/xxh64.h"
#include "cache/block_pool.h"
#include "cache/kv_cache.h"
#include "gemma_like/engine.h"
#include "gemma_like/files/synth.h"
#include "gemma_like/registry.h"
#include "io/gguf/gguf.h"
#include "ops/views.h"
#include "tests/must.h"
#include "tests/ops/sharing_team.h"

namespace inlay {

// Longer than an attention span and many windows, blocks and chunks.
inline constexpr size_t kLength = 1200;
inline constexpr size_t kTexts = 6;

// Steps of each random program; INLAY_PROPERTY_STEPS raises it for long runs.
inline size_t Steps() {
  const char* value = std::getenv("INLAY_PROPERTY_STEPS");
  return value == nullptr ? 1500 : std::strtoul(value, nullptr, 10);
}

inline uint64_t Seed() {
  const char* value = std::getenv("INLAY_PROPERTY_SEED");
  return value == nullptr ? 1 : std::strtoul(value, nullptr, 10);
}

inline uint64_t BitsOf(const float* row, size_t n) { return Xxh64Of(row, n * sizeof(float)); }

// A family's twin with one type of rows, as functions that do not name its config.
struct Family {
  std::string name;
  KvType type;
  int layers;
  size_t vocab_size;
  ConfigEntry config;
  std::unique_ptr<KVCache> (*create_cache)();
};

// Bard, Gemma, Granite, Mamba and layers of all other forms with f32 rows, and Bard and Gemma with
// q8 rows.
std::vector<Family> AllFamilies();

// A conversation on one of the texts, which it follows for as long as it has not been rewound.
struct Conversation {
  std::unique_ptr<KVCache> cache;
  size_t text = 0;
};

class FamilyTest : public ::testing::TestWithParam<Family> {
 protected:
  void SetUp() override {
    const std::string path =
        ::testing::TempDir() + GetParam().name + std::to_string(getpid()) + ".gguf";
    ASSERT_TRUE(WriteSynth(GetParam().config.synth(), {.type = WeightType::kF32}, 7, path).ok());
    auto opened = GgufFile::Open(path);
    ASSERT_TRUE(opened.ok()) << opened.status();
    file_ = std::make_shared<const GgufFile>(*std::move(opened));
    for (size_t threads : {1, 2, 3}) {
      auto model = GetParam().config.load(file_, {.team = std::make_shared<SharingTeam>(threads)});
      ASSERT_TRUE(model.ok()) << model.status();
      models_.push_back(*std::move(model));
    }
    std::filesystem::remove(path);
    vocab_ = GetParam().vocab_size;
    // Once per family and program: it takes longer than many of the tests.
    static auto& known = *new std::map<std::string, Texts>;
    auto [at, is_new] = known.try_emplace(GetParam().name);
    if (is_new) MakeTexts(at->second);
    texts_ = at->second.texts;
    expected_ = at->second.expected;
    shared_ = at->second.shared;
  }

  struct Texts {
    std::vector<std::vector<int32_t>> texts;
    std::vector<std::vector<uint64_t>> expected;  // of the logits after each token
    std::vector<size_t> shared;
  };

  // Text 0, and others that leave it somewhere; the bits expected after each token come from a run
  // token by token.
  void MakeTexts(Texts& made) {
    std::mt19937_64 random(11);
    for (size_t t = 0; t < kTexts; ++t) {
      const size_t shared = t == 0 ? 0 : random() % kLength;
      std::vector<int32_t> text(t == 0 ? 0 : shared);
      if (t > 0) std::copy_n(made.texts[0].begin(), shared, text.begin());
      while (text.size() < kLength) text.push_back(static_cast<int32_t>(random() % vocab_));
      Conversation run{NewCache(), t};
      std::vector<uint64_t> hashes;
      for (size_t i = 0; i < kLength; ++i) {
        std::vector<float> logits(vocab_);
        const SequenceStep step{.cache = run.cache.get(), .tokens = {&text[i], 1}};
        ASSERT_TRUE(
            models_[0]->Forward({&step, 1}, FloatRows(logits.data(), 1, logits.size())).ok());
        hashes.push_back(BitsOf(logits.data(), logits.size()));
      }
      made.texts.push_back(std::move(text));
      made.shared.push_back(shared);
      made.expected.push_back(std::move(hashes));
    }
  }

  // With a pool of its own if none is given. Its blocks start as NaN, so that reading a row before
  // it is written shows.
  std::unique_ptr<KVCache> NewCache(std::shared_ptr<BlockPool> pool = nullptr,
                                    size_t max_length = kLength) {
    if (pool == nullptr) pool = std::make_shared<BlockPool>(BlockPool::Options{.poison = true});
    return Must(models_[0]->CreateCache({.max_length = max_length, .pool = std::move(pool)},
                                        GetParam().type));
  }

  // Appends counts[i] tokens to each conversation in one batch and compares the bits of the logits
  // that it asks for: those after each token, or, in some batches, after the last ones of each
  // conversation (none included), which leaves rows out of the last layers.
  //
  // With cancel_before, conversation i gets wrong tokens and is cancelled before layer
  // cancel_before[i], unless that is kNever: nothing is left of them, and the others do not notice.
  static constexpr int kNever = -1;
  void AppendAndCompare(Engine& model, std::vector<Conversation*> conversations,
                        std::vector<size_t> counts, std::vector<int> cancel_before = {}) {
    cancel_before.resize(conversations.size(), kNever);
    const auto cancelled = [&](size_t i) { return cancel_before[i] != kNever; };
    const std::vector<int32_t> wrong(*std::max_element(counts.begin(), counts.end()), 3);
    std::vector<int> polls(conversations.size(), 0);
    std::vector<size_t> before;
    std::vector<SequenceStep> steps;
    size_t rows = 0;
    // A generator for each batch: threads run batches at once.
    uint64_t seed = Seed();
    for (size_t i = 0; i < conversations.size(); ++i) {
      seed = seed * 1'000'003 + conversations[i]->cache->length() * 1009 + counts[i];
    }
    std::mt19937_64 random(seed);
    const bool all = random() % 3 != 0;
    for (size_t i = 0; i < conversations.size(); ++i) {
      const Conversation& c = *conversations[i];
      // One that is to be cancelled must not be done earlier.
      const size_t wanted = all || cancelled(i) ? counts[i] : random() % (counts[i] + 1);
      before.push_back(c.cache->length());
      steps.push_back(
          {.cache = c.cache.get(),
           .tokens = absl::MakeConstSpan(texts_[c.text]).subspan(c.cache->length(), counts[i]),
           .logit_rows = wanted});
      if (cancelled(i)) {
        steps.back().tokens = absl::MakeConstSpan(wrong).first(counts[i]);
        steps.back().cancel = [&, i] { return polls[i]++ == cancel_before[i]; };
      }
      rows += wanted;
    }
    std::vector<float> logits(rows * vocab_);
    std::vector<absl::Status> outcomes(steps.size());
    const absl::Status status = model.Forward(steps, FloatRows(logits.data(), rows, vocab_),
                                              nullptr, absl::MakeSpan(outcomes));
    ASSERT_TRUE(status.ok()) << status;
    const float* row = logits.data();
    for (size_t i = 0; i < conversations.size(); ++i) {
      const Conversation& c = *conversations[i];
      if (cancelled(i)) {
        ASSERT_EQ(outcomes[i].code(), absl::StatusCode::kCancelled) << outcomes[i];
        ASSERT_EQ(c.cache->length(), before[i]);
        row += steps[i].logit_rows * vocab_;
        continue;
      }
      ASSERT_TRUE(outcomes[i].ok()) << outcomes[i];
      const size_t first = c.cache->length() - steps[i].logit_rows;
      for (size_t p = first; p < c.cache->length(); ++p, row += vocab_) {
        ASSERT_EQ(BitsOf(row, vocab_), expected_[c.text][p])
            << "text " << c.text << " position " << p;
      }
    }
  }

  // How many tokens two texts begin with in common, at least.
  size_t Shared(size_t a, size_t b) const {
    return a == b   ? kLength
           : a == 0 ? shared_[b]
           : b == 0 ? shared_[a]
                    : std::min(shared_[a], shared_[b]);
  }

  std::shared_ptr<const GgufFile> file_;
  std::vector<std::unique_ptr<Engine>> models_;  // of it, with 1, 2 and 3 threads
  size_t vocab_ = 0;
  std::vector<std::vector<int32_t>> texts_;
  std::vector<std::vector<uint64_t>> expected_;
  std::vector<size_t> shared_;  // how many tokens a text shares with text 0
};

}  // namespace inlay

#endif  // INLAY_TESTS_GEMMA_LIKE_FAMILY_FIXTURE_H_
