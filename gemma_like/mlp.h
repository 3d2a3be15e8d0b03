// The MLP of a layer, chosen by its type: gated, or a mixture of gated experts.
#ifndef INLAY_GEMMA_LIKE_MLP_H_
#define INLAY_GEMMA_LIKE_MLP_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "configs/layers.h"
#include "gemma_like/arena.h"
#include "gemma_like/weights.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/router.h"
#include "ops/thread_pool.h"
#include "ops/views.h"

namespace inlay {

// y = down(activation(gate x) * up x), for x and y [rows, model_dim], x being the input's, and
// weights of any hidden size.
template <Activation kActivation>
void GatedForward(const GatedMlpWeights& weights, FloatRows y, Arena& arena, MatMulInput& input,
                  ThreadPool& pool) {
  Arena::Scope scope(arena);
  FloatRows gate = arena.Rows(y.rows, weights.gate.rows());
  FloatRows up = arena.Rows(y.rows, weights.gate.rows());
  const MatMulTask halves[] = {{&weights.gate, gate}, {&weights.up, up}};
  MatMul(halves, std::size(halves), input, pool);
  input.Announce(gate, {&weights.down});
  ForRows(pool, y.rows, [&](size_t begin, size_t end) {
    const FloatRows g = gate.Slice(begin, end - begin);
    const FloatRows u = up.Slice(begin, end - begin);
    if constexpr (kActivation == Activation::kGeluTanh) {
      GeluTanhGate(g, u, g);
    } else {
      SiluGate(g, u, g);
    }
    input.RoundRows(begin, end);
  });
  MatMul(weights.down, input, y, pool);
}

constexpr size_t GatedScratchFloats(size_t rows, size_t hidden) {
  return 2 * Arena::Floats(rows, hidden);
}

template <class Mlp>
struct MlpForward;

template <int kHidden, Activation kActivation>
struct MlpForward<GatedMlp<kHidden, kActivation>> {
  static void Forward(const GatedMlpWeights& weights, FloatRows y, Arena& arena, MatMulInput& input,
                      ThreadPool& pool) {
    GatedForward<kActivation>(weights, y, arena, input, pool);
  }
  static constexpr size_t ScratchFloats(size_t rows, size_t) {
    return GatedScratchFloats(rows, kHidden);
  }
};

// Rows are grouped by expert, so that each expert's weights are read once for all of its rows. A
// row's sum runs over its experts in ascending order after the shared one, whatever the other rows
// chose.
template <MoeShape kShape, Activation kActivation>
struct MlpForward<MoeMlp<kShape, kActivation>> {
  static constexpr size_t kExperts = kShape.experts;
  static constexpr size_t kUsed = kShape.used_experts;
  static constexpr size_t kHidden = kShape.hidden;

  static void Forward(const MoeWeights& weights, FloatRows y, Arena& arena, MatMulInput& input,
                      ThreadPool& pool) {
    Arena::Scope scope(arena);
    const ConstFloatRows x = input.floats();
    FloatRows shares =
        arena.Rows(x.rows, kExperts);       // of each expert in each row; 0 where it is not chosen
    int32_t* members = arena.Ints(x.rows);  // the rows that chose the expert at hand
    FloatRows gathered = arena.Rows(x.rows, x.cols);
    FloatRows outputs = arena.Rows(x.rows, x.cols);
    MatMul(weights.router, input, shares, pool);
    for (size_t r = 0; r < x.rows; ++r) KeepTopSoftmax(kUsed, shares.Row(r), kExperts);

    if constexpr (kShape.shared_hidden > 0) {
      GatedForward<kActivation>(weights.shared, y, arena, input, pool);
    } else {
      for (size_t r = 0; r < y.rows; ++r) std::fill_n(y.Row(r), y.cols, 0.0f);
    }
    for (size_t e = 0; e < kExperts; ++e) {
      size_t count = 0;
      for (size_t r = 0; r < x.rows; ++r) {
        if (shares.Row(r)[e] == 0) continue;
        std::copy_n(x.Row(r), x.cols, gathered.Row(count));
        members[count++] = static_cast<int32_t>(r);
      }
      if (count == 0) continue;
      input.Set(gathered.Slice(0, count));
      GatedForward<kActivation>(weights.experts[e], outputs.Slice(0, count), arena, input, pool);
      for (size_t i = 0; i < count; ++i) {
        const size_t r = static_cast<size_t>(members[i]);
        AddScaled(outputs.Slice(i, 1), shares.Row(r)[e], y.Slice(r, 1));
      }
    }
  }

  static constexpr size_t ScratchFloats(size_t rows, size_t model_dim) {
    return Arena::Floats(rows, kExperts) + Arena::Floats(1, rows) +
           2 * Arena::Floats(rows, model_dim) +
           GatedScratchFloats(rows, std::max<size_t>(kHidden, kShape.shared_hidden));
  }
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_MLP_H_
