// The demo model and its golden values, loaded once per test program.
#ifndef INLAY_TESTS_GEMMA_LIKE_MODEL_FIXTURE_H_
#define INLAY_TESTS_GEMMA_LIKE_MODEL_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "cache/kv_cache.h"
#include "gemma_like/load_model.h"
#include "ops/views.h"
#include "tests/must.h"

namespace inlay {

inline constexpr char kBardPath[] = "models/bard.gguf";

inline LoadedModel LoadBard(size_t threads = 1, size_t max_batch = 512) {
  auto model = LoadModel(kBardPath, {.threads = threads, .max_batch = max_batch});
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

// Appends `tokens` in one step and returns the logits after each of them, row after row.
inline std::vector<float> Append(Engine& engine, KVCache& cache, absl::Span<const int32_t> tokens) {
  const size_t vocab = engine.info().vocab_size;
  std::vector<float> logits(tokens.size() * vocab);
  const SequenceStep step{.cache = &cache, .tokens = tokens, .logit_rows = tokens.size()};
  const absl::Status status =
      engine.Forward({&step, 1}, FloatRows(logits.data(), tokens.size(), vocab));
  EXPECT_TRUE(status.ok()) << status;
  return logits;
}

// Logits after each of 40 random tokens: a prompt in one step, then two tokens more.
inline std::vector<float> LogitsOf(const LoadedModel& model) {
  std::vector<int32_t> tokens;
  std::mt19937 random(5);
  while (tokens.size() < 40)
    tokens.push_back(static_cast<int32_t>(random() % model.engine->info().vocab_size));
  auto cache = Must(model.engine->CreateCache({}));
  std::vector<float> logits =
      Append(*model.engine, *cache, absl::MakeConstSpan(tokens).first(tokens.size() - 2));
  for (size_t i = tokens.size() - 2; i < tokens.size(); ++i) {
    const std::vector<float> more = Append(*model.engine, *cache, {&tokens[i], 1});
    logits.insert(logits.end(), more.begin(), more.end());
  }
  return logits;
}

}  // namespace inlay

#endif  // INLAY_TESTS_GEMMA_LIKE_MODEL_FIXTURE_H_
