// The demo model and its golden values, loaded once per test program.
#ifndef INLAY_TESTS_GEMMA_LIKE_MODEL_FIXTURE_H_
#define INLAY_TESTS_GEMMA_LIKE_MODEL_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "cache/kv_cache.h"
#include "gemma_like/load_model.h"
#include "ops/views.h"

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

}  // namespace inlay

#endif  // INLAY_TESTS_GEMMA_LIKE_MODEL_FIXTURE_H_
