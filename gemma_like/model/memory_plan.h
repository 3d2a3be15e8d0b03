// How much memory a model needs, known before any of it is allocated.
#ifndef INLAY_GEMMA_LIKE_MODEL_MEMORY_PLAN_H_
#define INLAY_GEMMA_LIKE_MODEL_MEMORY_PLAN_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace inlay {

// In bytes, at most. Conversations need more: see cache/cache_plan.h. The file itself takes none of
// the process's memory: the rows of embeddings are copied from it as they are needed (FileRows).
struct ModelMemory {
  size_t weights = 0;  // in the layout of the kernels
  size_t scratch = 0;  // for the largest batch

  size_t total() const { return weights + scratch; }
};

// Memory that this process may still allocate: the least of what the system has available, and what
// its control groups (CgroupMemory, which `root` is for) and the limit on its address space leave.
// The largest size_t if nothing is known.
size_t AvailableMemory(const std::string& root = "/");

// ResourceExhausted, naming both amounts, when `needed` is more than AvailableMemory().
absl::Status CheckMemory(absl::string_view what, size_t needed);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_MODEL_MEMORY_PLAN_H_
