// Checks a batch before any of it is run, and the options that bound its size.
#ifndef INLAY_GEMMA_LIKE_MODEL_BATCH_CHECK_H_
#define INLAY_GEMMA_LIKE_MODEL_BATCH_CHECK_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gemma_like/engine.h"
#include "ops/views.h"

namespace inlay {

// InvalidArgument for an EngineOptions::max_batch that is 0 or more than kMostBatch.
absl::Status CheckMaxBatch(size_t max_batch);

// The InvalidArgument errors of Engine::Forward.
absl::Status CheckBatch(absl::Span<const SequenceStep> steps, const FloatRows& logits,
                        absl::Span<const absl::Status> outcomes, const EngineInfo& info);

// Those of Engine::Embed.
absl::Status CheckTexts(absl::Span<const absl::Span<const int32_t>> texts,
                        const FloatRows& embeddings, const EngineInfo& info);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_MODEL_BATCH_CHECK_H_
