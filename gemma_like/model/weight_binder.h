// Finds a file's tensors by name, checks their shapes and types, and knows which were never
// requested.
#ifndef INLAY_GEMMA_LIKE_MODEL_WEIGHT_BINDER_H_
#define INLAY_GEMMA_LIKE_MODEL_WEIGHT_BINDER_H_

#include <cstddef>
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/progress.h"
#include "gemma_like/files/packed_file.h"
#include "gemma_like/model/file_rows.h"
#include "gemma_like/model/layer_binder.h"
#include "gemma_like/model/tensor_use.h"
#include "gemma_like/ranks/ranks.h"
#include "io/gguf/gguf.h"
#include "ops/matmul/packed_matrix.h"
#include "ops/team.h"
#include "ops/views.h"

namespace inlay {

// Tensors are found by the names that llama.cpp's converter gives them, or by those that other
// converters give them instead.
//
// The first error is kept, and all later requests return empty results. A loader therefore requests
// everything, then calls Finish() once.
class WeightBinder {
 public:
  // Packed matrices are returned without data: such a binder only records what a loader would
  // request.
  // `file` must outlive the views returned. Matrices have only this share of their rows, where
  // RowsOfRank splits them.
  explicit WeightBinder(const GgufFile& file, RankShare share = {}) : file_(file), share_(share) {}
  // `team` packs the matrices. `packed_bytes` is the memory for them: packed_bytes() of a binder of
  // the first kind after the same requests.
  // `progress` counts these bytes.
  WeightBinder(const GgufFile& file, RankShare share, Team& team, size_t packed_bytes,
               const Progress& progress = nullptr)
      : file_(file),
        share_(share),
        team_(&team),
        memory_(packed_bytes),
        progress_(progress),
        progress_total_(packed_bytes) {}

  RankShare share() const { return share_; }

  bool Has(absl::string_view name) const { return Lookup(name) != nullptr; }

  // Whether any of the layers' tensors has this name.
  bool AnyLayerHas(absl::string_view tensor) const;

  // How many rows the matrix has; `usual` if there is none.
  size_t Rows(absl::string_view name, size_t usual) const;

  // A matrix of rows x cols (the file's dimensions are cols, rows) that stays in the file; it must
  // not be packed there.
  FileRows InFile(absl::string_view name, size_t rows, size_t cols, TensorUse);

  // A matrix in the layout of the kernels: a view if it is packed in the file, else a copy. The
  // TensorUse makes no difference here.
  PackedMatrix Packed(absl::string_view name, size_t rows, size_t cols, TensorUse);

  // `count` of each of these matrices, stored one after the other in the tensor of its name (the
  // dimensions are cols, rows, count), or all in the tensor `stack`; see LayerBinder. The result is
  // [matrices][count]; after an error they are empty.
  std::vector<std::vector<PackedMatrix>> Packed(absl::string_view stack, size_t count,
                                                absl::Span<const StackedMatrix> matrices,
                                                size_t cols, TensorUse);

  // Of such a matrix the rows of each range, as a matrix of its own; each range begins at a whole
  // tile.
  std::vector<PackedMatrix> PackedRanges(absl::string_view name, size_t rows, size_t cols,
                                         absl::Span<const PartRange> ranges);

  // A vector of cols * rows elements of type F32, F16 or BF16. Writers give it the dimensions cols,
  // rows; any others with the same product are accepted.
  std::vector<float> Vector(absl::string_view name, TensorUse, size_t cols, size_t rows = 1);

  // A small matrix rows x cols in the file as its transpose [cols][rows] in float.
  std::vector<float> Transposed(absl::string_view name, TensorUse, size_t rows, size_t cols);

  // A tensor of this name may be there, although it is not requested.
  void Unused(absl::string_view name) { requested_.insert(std::string(name)); }

  // Checks that a vector has these values.
  void Constants(absl::string_view name, absl::Span<const float> values);

  // The tensors that were requested as packed matrices.
  const PackedTensors& packed() const { return packed_; }

  // Memory that the requested tensors need, in bytes.
  size_t bytes() const { return PackedMemory::AllocatedBytes(packed_bytes_) + vector_bytes_; }
  size_t packed_bytes() const { return packed_bytes_; }  // of it, copies of matrices

  // The first error, or one that names tensors that were not requested, or ok. Tensors that no text
  // model needs (see ignored.h) may be there.
  absl::Status Finish() const;

 private:
  // The tensor of this name, or of another converter's name for it; nullptr if there is none.
  const GgufTensor* Lookup(absl::string_view name) const;
  // The same of a tensor that is requested: its absence is an error.
  const GgufTensor* Find(absl::string_view name);
  const GgufTensor* FindMatrices(absl::string_view name, size_t count, size_t rows, size_t cols);
  // Likewise, from one tensor.
  std::vector<std::vector<PackedMatrix>> PackRows(absl::string_view name, size_t count,
                                                  absl::Span<const StackedMatrix> matrices,
                                                  size_t cols);
  // Rows of one of the `count` matrices of `rows` x `cols` in a tensor; empty without memory, which
  // becomes the status. Without a team they have no data.
  PackedMatrix PackPart(const GgufTensor& tensor, size_t index, size_t count, size_t rows,
                        size_t cols, PartRange part);
  // What is done once a tensor's matrices are packed.
  void FinishTensor(const GgufTensor& tensor);
  void Fail(const GgufTensor& tensor, absl::string_view wanted);

  const GgufFile& file_;
  const RankShare share_;
  Team* team_ = nullptr;
  PackedMemory memory_;
  Progress progress_;
  size_t progress_total_ = 0;
  std::unordered_set<std::string> requested_;
  PackedTensors packed_;
  size_t packed_bytes_ = 0;
  size_t vector_bytes_ = 0;
  absl::Status status_;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_MODEL_WEIGHT_BINDER_H_
