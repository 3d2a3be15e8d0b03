// The inputs that layers have beside the residual stream: per-layer embeddings.
#ifndef INLAY_GEMMA_LIKE_MODEL_LAYER_INPUTS_H_
#define INLAY_GEMMA_LIKE_MODEL_LAYER_INPUTS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gemma_like/layer_kind.h"
#include "gemma_like/model/arena.h"
#include "gemma_like/model/file_rows.h"
#include "gemma_like/model/tensor_use.h"
#include "ops/matmul/packed_matrix.h"
#include "ops/row_ops.h"
#include "ops/team.h"
#include "ops/views.h"

namespace inlay {

// What the inputs are computed from. For a token with embedding x, each layer's `dim` elements are
//   (sqrt(dim) * table[token] + RmsNorm(projection x / sqrt(model_dim))) / sqrt(2).
struct LayerInputWeights {
  FileRows table;           // [vocab_size, layers * dim]
  PackedMatrix projection;  // [layers * dim, model_dim]
  std::vector<float> norm;  // [dim], for the projection's part of each layer

  template <class Binder>
  void Bind(Binder& binder, size_t vocab_size, size_t model_dim, size_t layers, size_t dim) {
    table = binder.InFile("per_layer_token_embd.weight", vocab_size, layers * dim,
                          TensorUse::kLayerEmbedding);
    projection =
        binder.Packed("per_layer_model_proj.weight", layers * dim, model_dim, TensorUse::kMatrix);
    norm = binder.Vector("per_layer_proj_norm.weight", TensorUse::kNorm, dim);
  }

  // input [layers * dim] = sqrt(dim) * the token's row.
  void LookUp(int32_t token, float* input) const {
    table.Read(static_cast<size_t>(token), input);
    Scale(std::sqrt(static_cast<float>(norm.size())), FloatRows(input, 1, table.cols()));
  }

  // Completes the inputs [rows, layers * dim], which LookUp has written, by the projection of the
  // scaled embeddings [rows, model_dim].
  void Add(FloatRows embeddings, FloatRows inputs, Pass& pass) const {
    Arena::Scope scope(pass.arena);
    const FloatRows projected = pass.arena.Rows(inputs.rows, inputs.cols);
    const Operand x = pass.MakeOperand(embeddings, OperandForms::For({&projection}));
    pass.Multiply(projection, x, projected);
    const size_t dim = norm.size(), layers = inputs.cols / dim;
    ForRows(pass.team, inputs.rows, 3 * inputs.cols, [&](size_t begin, size_t end) {
      const FloatRows more = projected.Slice(begin, end - begin);
      const FloatRows sum = inputs.Slice(begin, end - begin);
      Scale(1 / std::sqrt(static_cast<float>(embeddings.cols)), more);
      const FloatRows parts(more.data, more.rows * layers, dim);
      RmsNorm(parts, norm.data(), pass.norm_epsilon, parts);
      AddScaled(more, 1, sum);
      Scale(std::sqrt(0.5f), sum);
    });
  }

  // Floats of the arena that Add needs.
  static constexpr size_t ScratchFloats(size_t rows, size_t model_dim, size_t cols) {
    return Arena::Floats(rows, cols) + Pass::OperandFloats(rows, model_dim);
  }
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_MODEL_LAYER_INPUTS_H_
