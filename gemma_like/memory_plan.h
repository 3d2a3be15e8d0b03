// What a model takes in memory, known before any of it is allocated.
#ifndef INLAY_GEMMA_LIKE_MEMORY_PLAN_H_
#define INLAY_GEMMA_LIKE_MEMORY_PLAN_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "io/gguf.h"
#include "ops/packed_matrix.h"
#include "ops/views.h"

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

// The binder that adds up what a file's tensors will take and allocates nothing; see
// bind_weights.h. What does not fit the config counts as nothing: loading will say so.
class WeightSizer {
 public:
  explicit WeightSizer(const GgufFile& file) : file_(file) {}

  size_t bytes() const { return bytes_; }
  size_t widest() const { return widest_; }  // columns of the widest matrix

  bool Has(absl::string_view name) const { return file_.FindTensor(name) != nullptr; }
  WeightMatrix Matrix(absl::string_view name, size_t rows, size_t cols) {
    return Matrices(name, 1, rows, cols);
  }
  WeightMatrix Matrices(absl::string_view name, size_t count, size_t rows, size_t cols) {
    const GgufTensor* tensor = file_.FindTensor(name);
    if (tensor == nullptr || tensor->num_elements() != count * rows * cols) return {};
    return {.data = tensor->data.data(), .type = tensor->type, .rows = count * rows, .cols = cols};
  }
  PackedMatrix Pack(const WeightMatrix& w) {
    if (w.data != nullptr) bytes_ += PackedMatrix::AllocatedBytes(w.type, w.rows, w.cols);
    widest_ = std::max(widest_, w.cols);
    return {};
  }
  std::vector<float> Vector(absl::string_view, size_t cols, size_t rows = 1) {
    bytes_ += cols * rows * sizeof(float);
    return {};
  }
  std::vector<float> Transposed(absl::string_view name, size_t rows, size_t cols) {
    return Vector(name, cols, rows);
  }

 private:
  const GgufFile& file_;
  size_t bytes_ = 0;
  size_t widest_ = 0;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_MEMORY_PLAN_H_
