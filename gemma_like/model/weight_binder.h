// Takes tensors out of a file by name, checking shape and type, and knows which were never asked
// for.
#ifndef INLAY_GEMMA_LIKE_MODEL_WEIGHT_BINDER_H_
#define INLAY_GEMMA_LIKE_MODEL_WEIGHT_BINDER_H_

#include <cstddef>
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gemma_like/model/tensor_use.h"
#include "io/gguf/gguf.h"
#include "ops/matmul/packed_matrix.h"
#include "ops/quant/weight_matrix.h"
#include "ops/team.h"
#include "ops/views.h"

namespace inlay {

// The first error stays; what is asked for after it comes back empty. So a loader asks for
// everything, then looks once.
class WeightBinder {
 public:
  // Packed matrices come back empty: a loader then tells what it would ask for. `file` must outlive
  // the views given out.
  explicit WeightBinder(const GgufFile& file) : file_(file) {}
  // `team` packs, into memory for what another loader asked for: its packed_bytes().
  WeightBinder(const GgufFile& file, Team& team, size_t packed_bytes)
      : file_(file), team_(&team), memory_(packed_bytes) {}

  bool Has(absl::string_view name) const { return file_.FindTensor(name) != nullptr; }

  // How many rows the matrix has, but no fewer than `least`.
  size_t Rows(absl::string_view name, size_t least) const;

  // A matrix of rows x cols (the file's dimensions are cols, rows) as the file stores it; it must
  // not be packed there.
  WeightMatrix Matrix(absl::string_view name, size_t rows, size_t cols);

  // A matrix as the kernels want it: a view where it is packed in the file, else a copy. What a
  // tensor is for makes no difference here.
  PackedMatrix Packed(absl::string_view name, size_t rows, size_t cols, TensorUse);

  // `count` matrices of rows x cols, one after the other in a tensor (its dimensions are cols,
  // rows, count). Empty after an error.
  std::vector<PackedMatrix> Packed(absl::string_view name, size_t count, size_t rows, size_t cols,
                                   TensorUse);

  // A vector of cols * rows elements of type F32, F16 or BF16. Writers give it the dimensions cols,
  // rows; any others with the same product are fine.
  std::vector<float> Vector(absl::string_view name, TensorUse, size_t cols, size_t rows = 1);

  // A small matrix rows x cols in the file as its transpose [cols][rows] in float.
  std::vector<float> Transposed(absl::string_view name, TensorUse, size_t rows, size_t cols);

  // Names of the tensors that were asked for as packed matrices.
  const std::unordered_set<std::string>& packed() const { return packed_; }

  // Memory that what was asked for takes, in bytes.
  size_t bytes() const { return PackedMemory::AllocatedBytes(packed_bytes_) + vector_bytes_; }
  size_t packed_bytes() const { return packed_bytes_; }  // of it, copies of matrices

  // The first error, or a tensor that nobody asked for, or ok.
  absl::Status Finish() const;

 private:
  const GgufTensor* Take(absl::string_view name);
  const GgufTensor* TakeMatrices(absl::string_view name, size_t count, size_t rows, size_t cols);
  void Fail(const GgufTensor& tensor, absl::string_view wanted);

  const GgufFile& file_;
  Team* team_ = nullptr;
  PackedMemory memory_;
  std::unordered_set<std::string> taken_;
  std::unordered_set<std::string> packed_;
  size_t packed_bytes_ = 0;
  size_t vector_bytes_ = 0;
  absl::Status status_;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_MODEL_WEIGHT_BINDER_H_
