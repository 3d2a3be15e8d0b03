// What all layers of one forward pass share.
#ifndef INLAY_GEMMA_LIKE_FORWARD_STATE_H_
#define INLAY_GEMMA_LIKE_FORWARD_STATE_H_

#include <cstddef>

#include "absl/types/span.h"
#include "cache/hybrid_cache.h"
#include "configs/config.h"
#include "gemma_like/arena.h"
#include "ops/matmul.h"
#include "ops/thread_pool.h"
#include "ops/views.h"

namespace inlay {

// One sequence's share of the rows of a batch.
template <ModelConfig Config>
struct BatchPart {
  HybridCache<Config>* cache;
  size_t row;       // its first row in the batch
  size_t rows;      // how many it has
  size_t position;  // in the conversation, of its first row
};

template <ModelConfig Config>
struct ForwardState {
  FloatRows residual;  // [rows, model_dim], the residual stream
  absl::Span<const BatchPart<Config>> parts;
  Arena& arena;
  MatMulInput& input;  // of the product at hand
  ThreadPool& pool;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_FORWARD_STATE_H_
