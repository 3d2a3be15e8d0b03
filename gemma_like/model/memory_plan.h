// What a model takes in memory, known before any of it is allocated.
#ifndef INLAY_GEMMA_LIKE_MODEL_MEMORY_PLAN_H_
#define INLAY_GEMMA_LIKE_MODEL_MEMORY_PLAN_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace inlay {

// In bytes, at most. Conversations come on top: see cache/cache_plan.h. Of the file itself only the
// embedding's rows stay in use, and these pages belong to the system.
struct ModelMemory {
  size_t weights = 0;  // as the kernels want them
  size_t scratch = 0;  // for the largest batch

  size_t total() const { return weights + scratch; }
};

// Memory that this process may still take: the least of what the system has available and the
// limit on its address space leaves. The largest number where nothing is known.
size_t AvailableMemory();

// ResourceExhausted, naming both amounts, when `needed` is more than AvailableMemory().
absl::Status CheckMemory(absl::string_view what, size_t needed);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_MODEL_MEMORY_PLAN_H_
