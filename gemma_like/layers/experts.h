// The experts of a mixture: their weights, and the sum of those that a router has chosen.
#ifndef INLAY_GEMMA_LIKE_LAYERS_EXPERTS_H_
#define INLAY_GEMMA_LIKE_LAYERS_EXPERTS_H_

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "configs/layers/moe_mlp.h"
#include "gemma_like/layer_kind.h"
#include "gemma_like/layers/gated_mlp.h"
#include "ops/row_ops.h"

namespace inlay {

// Every pair of a row and an expert chosen for it is a slot; slots are ordered by expert, so that
// each expert's weights are read once for all of its rows. A row's sum runs over its experts in
// ascending order, whatever the other rows chose.
template <MoeShape kShape, Activation kActivation>
struct Experts {
  static constexpr size_t kExperts = kShape.experts;
  static constexpr size_t kUsed = kShape.used_experts;
  static constexpr size_t kHidden = kShape.hidden;

  std::vector<GatedWeights> weights;  // [kExperts]

  // One tensor holds a matrix of all experts.
  template <class Binder>
  void Bind(LayerBinder<Binder>& b) {
    weights.resize(kExperts);
    std::vector<std::vector<PackedMatrix>> gate_up = b.Stacked(
        "ffn_gate_up_exps.weight", kExperts,
        {{"ffn_gate_exps.weight", kHidden}, {"ffn_up_exps.weight", kHidden}}, b.model_dim());
    std::vector<PackedMatrix> down =
        b.Matrices("ffn_down_exps.weight", kExperts, b.model_dim(), kHidden, TensorUse::kBranchEnd);
    for (size_t e = 0; e < kExperts; ++e) {
      weights[e] = {.gate = std::move(gate_up[0][e]),
                    .up = std::move(gate_up[1][e]),
                    .down = std::move(down[e])};
    }
  }

  OperandForms InputForms() const { return OperandForms::For({&weights[0].gate, &weights[0].up}); }

  // Adds to each row of y [rows, model_dim] its experts' outputs for x, times their shares [rows,
  // kExperts], which are 0 for all but kUsed of a row. `between` is called after the products with
  // gates and ups, `start(r)` before the first addition to row r. In a schedule the products before
  // and after `between` are empty: tokens choose them.
  template <class Between, class Start>
  void Add(ConstFloatRows shares, const Operand& x, FloatRows y, Pass& pass, const Between& between,
           const Start& start) const {
    Arena& arena = pass.arena;
    Arena::Scope scope(arena);
    const Slots slots(shares, arena);
    FloatRows gate = arena.Rows(slots.count, kHidden);
    FloatRows up = arena.Rows(slots.count, kHidden);
    FloatRows down = arena.Rows(slots.count, y.cols);

    std::array<MatMulTask, 2 * kExperts> tasks;
    for (size_t e = 0; e < kExperts; ++e) {
      const int32_t* x_rows = slots.rows + slots.begin[e];
      tasks[2 * e] = {&weights[e].gate, slots.Of(e, gate), x_rows};
      tasks[2 * e + 1] = {&weights[e].up, slots.Of(e, up), x_rows};
    }
    pass.Multiply(tasks, x);
    between();
    const Operand activated = ActivateForDown<kActivation>(gate, up, weights[0].down, pass);
    for (size_t e = 0; e < kExperts; ++e) {
      tasks[e] = {&weights[e].down, slots.Of(e, down), slots.numbers + slots.begin[e]};
    }
    pass.Multiply(std::span(tasks).first(kExperts), activated);
    ForRows(pass.team, y.rows, kUsed * y.cols, [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) {
        start(r);
        for (size_t i = 0; i < kUsed && slots.of_row[r * kUsed + i] >= 0; ++i) {
          const size_t slot = static_cast<size_t>(slots.of_row[r * kUsed + i]);
          const float share = shares.Row(r)[slots.expert[slot]];
          AddScaled(down.Slice(slot, 1), share, y.Slice(r, 1));
        }
      }
    });
  }

  // Floats of the arena that Add needs if `between` needs that many.
  static constexpr size_t ScratchFloats(const PassSize& size, size_t between) {
    const size_t slots = size.rows * kUsed;
    return Slots::ScratchFloats(size.rows) + 2 * Arena::Floats(slots, kHidden) +
           Arena::Floats(slots, size.model_dim) +
           std::max(between, Pass::OperandFloats(slots, kHidden));
  }

  // Counts only as many experts as a token uses.
  TokenWork Work() const {
    TokenWork work;
    for (size_t i = 0; i < kUsed; ++i) work += weights.front().Work();
    return work;
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
          assert(count < shares.rows * kUsed);
          const auto slot = static_cast<int32_t>(count++);
          rows[slot] = static_cast<int32_t>(r);
          numbers[slot] = slot;
          expert[slot] = static_cast<int32_t>(e);
          *std::find(of_row + r * kUsed, of_row + (r + 1) * kUsed, -1) = slot;
        }
      }
      begin[kExperts] = count;
    }

    // The slots of one expert among `all`, which has a row for every slot.
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

#endif  // INLAY_GEMMA_LIKE_LAYERS_EXPERTS_H_
