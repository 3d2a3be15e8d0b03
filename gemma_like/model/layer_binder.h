// Names the tensors of a layer's parts.
#ifndef INLAY_GEMMA_LIKE_MODEL_LAYER_BINDER_H_
#define INLAY_GEMMA_LIKE_MODEL_LAYER_BINDER_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/rank_share.h"
#include "gemma_like/model/tensor_use.h"
#include "gemma_like/ranks/ranks.h"
#include "ops/matmul/packed_matrix.h"

namespace inlay {

// One of the matrices that some files store as one tensor.
struct StackedMatrix {
  std::string name;
  size_t rows = 0;
  // Rows that stay together where ranks share the matrix: a multiple of kTileRows, or all.
  size_t unit = kRankRows;
  // How many ranks, one after the other, hold the same rows.
  size_t holders = 1;
};

// Asks a binder for the tensors of one layer: "attn_q.weight" is "blk.3.attn_q.weight" of layer 3.
// Loading, the memory plan, packing and synth have binders of their own; see bind_weights.h.
template <class Binder>
class LayerBinder {
 public:
  LayerBinder(Binder& binder, int index, size_t model_dim)
      : binder_(binder), prefix_(absl::StrCat("blk.", index, ".")), model_dim_(model_dim) {}

  size_t model_dim() const { return model_dim_; }
  // The share of the matrices' rows that is asked for.
  RankShare share() const {
    if constexpr (requires { binder_.share(); }) return binder_.share();
    return {};
  }
  bool Has(absl::string_view tensor) const { return binder_.Has(Name(tensor)); }

  // [rows, cols] = [outputs, inputs].
  PackedMatrix Matrix(absl::string_view tensor, size_t rows, size_t cols,
                      TensorUse use = TensorUse::kMatrix) {
    return binder_.Packed(Name(tensor), rows, cols, use);
  }
  // Matrices of `cols` columns that the same operand is multiplied with, each from the tensor of
  // its name. A file may instead have one tensor `stack` with the rows of the first, then those of
  // the second and so on.
  std::vector<PackedMatrix> Stacked(absl::string_view stack, std::vector<StackedMatrix> matrices,
                                    size_t cols, TensorUse use = TensorUse::kMatrix) {
    std::vector<PackedMatrix> result;
    for (std::vector<PackedMatrix>& one : Stacked(stack, 1, std::move(matrices), cols, use))
      result.push_back(std::move(one.front()));
    return result;
  }
  // The same where each tensor holds `count` of them, and the stack of each of these the rows of
  // the first, then those of the second and so on. The result is [matrices][count].
  std::vector<std::vector<PackedMatrix>> Stacked(absl::string_view stack, size_t count,
                                                 std::vector<StackedMatrix> matrices, size_t cols,
                                                 TensorUse use = TensorUse::kMatrix) {
    for (StackedMatrix& matrix : matrices) matrix.name = Name(matrix.name);
    return binder_.Packed(Name(stack), count, matrices, cols, use);
  }
  // One matrix, of whose rows `unit` stay together.
  PackedMatrix Matrix(absl::string_view tensor, size_t rows, size_t unit, size_t cols,
                      TensorUse use) {
    return std::move(Stacked(tensor, {{std::string(tensor), rows, unit}}, cols, use).front());
  }
  // Of a matrix [rows, cols] those rows that a rank computes, each range of them a matrix. Where
  // there are none, the matrix is what Matrix gives.
  std::vector<PackedMatrix> RowRanges(absl::string_view tensor, size_t rows, size_t cols,
                                      [[maybe_unused]] absl::Span<const PartRange> ranges) {
    if constexpr (requires { binder_.PackedRanges(Name(tensor), rows, cols, ranges); }) {
      if (!ranges.empty()) return binder_.PackedRanges(Name(tensor), rows, cols, ranges);
    }
    std::vector<PackedMatrix> whole;
    whole.push_back(Matrix(tensor, rows, cols));
    return whole;
  }
  // One tensor that holds `count` of them.
  std::vector<PackedMatrix> Matrices(absl::string_view tensor, size_t count, size_t rows,
                                     size_t cols, TensorUse use = TensorUse::kMatrix) {
    return std::move(Stacked(tensor, count, {{std::string(tensor), rows}}, cols, use).front());
  }
  // [rows * cols]; files give it the dimensions cols, rows.
  std::vector<float> Vector(absl::string_view tensor, TensorUse use, size_t cols, size_t rows = 1) {
    return binder_.Vector(Name(tensor), use, cols, rows);
  }
  // The same, or `size` elements of `otherwise` if no layer of the file has such a tensor: some
  // checkpoints are trained without it.
  std::vector<float> OptionalVector(absl::string_view tensor, TensorUse use, size_t size,
                                    float otherwise) {
    if (!binder_.AnyLayerHas(tensor)) return std::vector<float>(size, otherwise);
    return Vector(tensor, use, size);
  }
  // A vector of the model, not of this layer, that must have these values: they follow from the
  // config, and files repeat them. Layers may ask for the same one.
  void ModelConstants(absl::string_view tensor, const std::vector<float>& values) {
    binder_.Constants(tensor, values);
  }
  // A tensor that files may have and nothing reads.
  void Unused(absl::string_view tensor) { binder_.Unused(Name(tensor)); }
  // The filters of a convolution over the sequence, [width, channels]: the transpose of the file's.
  std::vector<float> Filters(absl::string_view tensor, size_t channels, size_t width) {
    return binder_.Transposed(Name(tensor), TensorUse::kConvolution, channels, width);
  }

 private:
  std::string Name(absl::string_view tensor) const { return absl::StrCat(prefix_, tensor); }

  Binder& binder_;
  std::string prefix_;
  size_t model_dim_;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_MODEL_LAYER_BINDER_H_
