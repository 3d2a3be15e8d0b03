// The MLP of a layer, chosen by its type: gated, or a mixture of gated experts.
#ifndef INLAY_GEMMA_LIKE_MLP_H_
#define INLAY_GEMMA_LIKE_MLP_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "configs/layers.h"
#include "gemma_like/arena.h"
#include "gemma_like/weights.h"
#include "ops/matmul.h"
#include "ops/router.h"
#include "ops/row_ops.h"
#include "ops/thread_pool.h"
#include "ops/views.h"

namespace inlay {

// gate = activation(gate) * up, for all rows, which become the input of products with `down`.
template <Activation kActivation>
void ActivateForDown(FloatRows gate, ConstFloatRows up, const PackedMatrix& down,
                     MatMulInput& input, ThreadPool& pool) {
  input.Announce(gate, {&down});
  ForRows(pool, gate.rows, [&](size_t begin, size_t end) {
    const FloatRows g = gate.Slice(begin, end - begin);
    const ConstFloatRows u = up.Slice(begin, end - begin);
    if constexpr (kActivation == Activation::kGeluTanh) {
      GeluTanhGate(g, u, g);
    } else {
      SiluGate(g, u, g);
    }
    input.RoundRows(begin, end);
  });
}

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
  ActivateForDown<kActivation>(gate, up, weights.down, input, pool);
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

// Every choice of an expert by a row is a slot; slots are ordered by expert, so that each expert's
// weights are read once for all of its rows. A row's sum runs over its experts in ascending order
// after the shared one, whatever the other rows chose.
template <MoeShape kShape, Activation kActivation>
struct MlpForward<MoeMlp<kShape, kActivation>> {
  static constexpr size_t kExperts = kShape.experts;
  static constexpr size_t kUsed = kShape.used_experts;
  static constexpr size_t kHidden = kShape.hidden;

  static void Forward(const MoeWeights& weights, FloatRows y, Arena& arena, MatMulInput& input,
                      ThreadPool& pool) {
    Arena::Scope scope(arena);
    const size_t rows = y.rows;
    FloatRows shares = arena.Rows(rows, kExperts);  // of each expert in each row; 0 if not chosen
    MatMul(weights.router, input, shares, pool);
    ForRows(pool, rows, [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) KeepTopSoftmax(kUsed, shares.Row(r), kExperts);
    });
    const Slots slots(shares, arena);
    FloatRows gate = arena.Rows(slots.count, kHidden);
    FloatRows up = arena.Rows(slots.count, kHidden);
    FloatRows down = arena.Rows(slots.count, y.cols);

    // The experts' products first: those of the shared expert replace the input.
    std::array<MatMulTask, 2 * kExperts> tasks;
    for (size_t e = 0; e < kExperts; ++e) {
      const int32_t* x_rows = slots.rows + slots.begin[e];
      tasks[2 * e] = {&weights.experts[e].gate, slots.Of(e, gate), x_rows};
      tasks[2 * e + 1] = {&weights.experts[e].up, slots.Of(e, up), x_rows};
    }
    MatMul(tasks.data(), tasks.size(), input, pool);
    if constexpr (kShape.shared_hidden > 0) {
      GatedForward<kActivation>(weights.shared, y, arena, input, pool);
    }
    ActivateForDown<kActivation>(gate, up, weights.experts[0].down, input, pool);
    for (size_t e = 0; e < kExperts; ++e) {
      tasks[e] = {&weights.experts[e].down, slots.Of(e, down), slots.numbers + slots.begin[e]};
    }
    MatMul(tasks.data(), kExperts, input, pool);
    ForRows(pool, rows, [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) {
        if constexpr (kShape.shared_hidden == 0) std::fill_n(y.Row(r), y.cols, 0.0f);
        for (size_t i = 0; i < kUsed && slots.of_row[r * kUsed + i] >= 0; ++i) {
          const size_t slot = static_cast<size_t>(slots.of_row[r * kUsed + i]);
          const float share = shares.Row(r)[slots.expert[slot]];
          AddScaled(down.Slice(slot, 1), share, y.Slice(r, 1));
        }
      }
    });
  }

  static constexpr size_t ScratchFloats(size_t rows, size_t model_dim) {
    const size_t slots = rows * kUsed;
    return Arena::Floats(rows, kExperts) + Slots::ScratchFloats(rows) +
           2 * Arena::Floats(slots, kHidden) + Arena::Floats(slots, model_dim) +
           GatedScratchFloats(rows, kShape.shared_hidden);
  }

 private:
  struct Slots {
    Slots(ConstFloatRows shares, Arena& arena)
        : rows(arena.Ints(shares.rows * kUsed)),
          numbers(arena.Ints(shares.rows * kUsed)),
          expert(arena.Ints(shares.rows * kUsed)),
          of_row(arena.Ints(shares.rows * kUsed)) {
      std::fill_n(of_row, shares.rows * kUsed, -1);
      for (size_t e = 0; e < kExperts; ++e) {
        begin[e] = count;
        for (size_t r = 0; r < shares.rows; ++r) {
          if (shares.Row(r)[e] == 0) continue;
          const auto slot = static_cast<int32_t>(count++);
          rows[slot] = static_cast<int32_t>(r);
          numbers[slot] = slot;
          expert[slot] = static_cast<int32_t>(e);
          *std::find(of_row + r * kUsed, of_row + (r + 1) * kUsed, -1) = slot;
        }
      }
      begin[kExperts] = count;
    }

    // The rows of an array over all slots that belong to an expert.
    FloatRows Of(size_t e, FloatRows all) const {
      return all.Slice(begin[e], begin[e + 1] - begin[e]);
    }

    static constexpr size_t ScratchFloats(size_t rows) {
      return 4 * Arena::Floats(1, rows * kUsed);
    }

    size_t count = 0;
    std::array<size_t, kExperts + 1> begin;  // the first slot of each expert
    int32_t* rows;                           // of each slot: its row,
    int32_t* numbers;                        // its own number,
    int32_t* expert;                         // and its expert
    int32_t* of_row;                         // [rows, kUsed], each row's slots in order, then -1
  };
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_MLP_H_
