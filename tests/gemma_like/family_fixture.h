// One tiny model per family, texts, and the bits that each token's logits must have: what the tests
// of promises P2 and P3 compare with.
#ifndef INLAY_TESTS_GEMMA_LIKE_FAMILY_FIXTURE_H_
#define INLAY_TESTS_GEMMA_LIKE_FAMILY_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/xxh64.h"
#include "cache/block_pool.h"
#include "cache/kv_cache.h"
#include "gemma_like/engine.h"
#include "gemma_like/registry.h"
#include "io/gguf/gguf.h"
#include "ops/quant/weight_type.h"

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

// A family's twin with one type of rows and one of weights, as functions that do not name its
// config.
struct Family {
  std::string name;
  KvType type;
  WeightType weights;  // of the matrices whose rows allow it; see Quantization
  int layers;
  size_t vocab_size;
  ConfigEntry config;
  std::unique_ptr<KVCache> (*create_cache)();
};

// Bard, Gemma, Granite, Mamba and layers of all other forms, each with one type of rows, and some
// of them with q8 rows as well. Most have F32 weights; attention alone and a hybrid have Q8_0 ones,
// and BF16 is among the types of both.
std::vector<Family> AllFamilies();
// These, and one whose layers are all large enough for ranks to share.
std::vector<Family> RankFamilies();

// A conversation on one of the texts, which it follows for as long as it has not been rewound.
struct Conversation {
  std::unique_ptr<KVCache> cache;
  size_t text = 0;
};

class FamilyTest : public ::testing::TestWithParam<Family> {
 protected:
  void SetUp() override;

  struct Texts {
    std::vector<std::vector<int32_t>> texts;
    std::vector<std::vector<uint64_t>> expected;  // of the logits after each token
    std::vector<size_t> shared;
  };

  // Text 0, and others that leave it somewhere; the bits expected after each token come from a run
  // token by token.
  void MakeTexts(Texts& made);

  // With a pool of its own if none is given. Its blocks start as NaN, so that reading a row before
  // it is written shows.
  std::unique_ptr<KVCache> NewCache(std::shared_ptr<BlockPool> pool = nullptr,
                                    size_t max_length = kLength);

  // Appends counts[i] tokens to each conversation in one batch and compares the bits of the logits
  // that it asks for: those after each token, or, in some batches, after the last ones of each
  // conversation (none included), which leaves rows out of the last layers.
  //
  // With cancel_before, conversation i gets wrong tokens and is cancelled before layer
  // cancel_before[i], unless that is kNever: nothing is left of them, and the others do not notice.
  static constexpr int kNever = -1;
  void AppendAndCompare(Engine& model, std::vector<Conversation*> conversations,
                        std::vector<size_t> counts, std::vector<int> cancel_before = {});

  // How many tokens two texts begin with in common, at least.
  size_t Shared(size_t a, size_t b) const;

  std::shared_ptr<const GgufFile> file_;
  std::vector<std::unique_ptr<Engine>> models_;  // of it, with 1, 2 and 3 threads
  size_t vocab_ = 0;
  std::vector<std::vector<int32_t>> texts_;
  std::vector<std::vector<uint64_t>> expected_;
  std::vector<size_t> shared_;  // how many tokens a text shares with text 0
};

}  // namespace inlay

#endif  // INLAY_TESTS_GEMMA_LIKE_FAMILY_FIXTURE_H_
