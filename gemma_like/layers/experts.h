// The experts of a mixture: their weights, and the sum of those that a router has chosen.
#ifndef INLAY_GEMMA_LIKE_LAYERS_EXPERTS_H_
#define INLAY_GEMMA_LIKE_LAYERS_EXPERTS_H_

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "configs/layers/moe_mlp.h"
#include "gemma_like/layer_kind.h"
#include "gemma_like/layers/expert_mlp.h"
#include "ops/row_ops.h"

namespace inlay {

// Every pair of a row and an expert chosen for it is a slot; slots are ordered by expert, so that
// each expert's weights are read once for all of its rows. A row's sum runs over its experts in
// ascending order, whatever the other rows chose.
template <MoeShape kShape, Activation kActivation>
struct Experts {
  using Mlp = ExpertMlp<kActivation>;
  static constexpr size_t kExperts = kShape.experts;
  static constexpr size_t kUsed = kShape.used_experts;
  static constexpr size_t kHidden = kShape.hidden;

  std::vector<typename Mlp::Weights> weights;  // [kExperts]

  // How many elements the input and the output of an expert have.
  static constexpr size_t Width(size_t model_dim) {
    return kShape.latent == 0 ? model_dim : size_t{kShape.latent};
  }

  template <class Binder>
  void Bind(LayerBinder<Binder>& b, TensorUse end) {
    weights = Mlp::BindAll(b, kExperts, Width(b.model_dim()), kHidden, end);
  }

  // The matrices of all experts have one type.
  OperandForms InputForms() const {
    OperandForms forms;
    for (const PackedMatrix* w : Mlp::Inputs(weights.front()))
      forms = forms | OperandForms::For({w});
    return forms;
  }

  // Adds to each row of y [rows, width] its experts' outputs for x, times their shares [rows,
  // kExperts], which are 0 for all but kUsed of a row. `between` is called after the products with
  // the experts' inputs, `start(r)` before the first addition to row r. In a schedule the products
  // before and after `between` are empty: tokens choose them.
  template <class Between, class Start>
  void Add(ConstFloatRows shares, const Operand& x, FloatRows y, Pass& pass, const Between& between,
           const Start& start) const {
    Arena& arena = pass.arena;
    Arena::Scope scope(arena);
    const Slots slots(shares, arena);
    std::array<FloatRows, Mlp::kInputs> hidden;
    for (FloatRows& product : hidden) product = arena.Rows(slots.count, kHidden);
    const FloatRows down = arena.Rows(slots.count, y.cols);

    std::array<MatMulTask, Mlp::kInputs * kExperts> tasks;
    for (size_t e = 0; e < kExperts; ++e) {
      const auto inputs = Mlp::Inputs(weights[e]);
      for (size_t i = 0; i < Mlp::kInputs; ++i) {
        tasks[Mlp::kInputs * e + i] = {inputs[i], OwnColumns(*inputs[i], slots.Of(e, hidden[i])),
                                       slots.rows + slots.begin[e]};
      }
    }
    pass.MultiplyOwn(tasks, x);
    between();
    const Operand activated = Mlp::Activate(weights.front(), hidden, pass);
    for (size_t e = 0; e < kExperts; ++e) {
      tasks[e] = {&weights[e].down, OwnColumns(weights[e].down, slots.Of(e, down)),
                  slots.numbers + slots.begin[e]};
    }
    pass.MultiplyOwn(std::span(tasks).first(kExperts), activated);
    // Ranks have the same rows of every expert, so that each sums its part, and the sums alone are
    // gathered.
    const PackedMatrix& any = weights.front().down;
    ForRows(pass.team, y.rows, kUsed * y.cols, [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) {
        start(r);
        for (size_t i = 0; i < kUsed && slots.of_row[r * kUsed + i] >= 0; ++i) {
          const size_t slot = static_cast<size_t>(slots.of_row[r * kUsed + i]);
          const float share = shares.Row(r)[slots.expert[slot]];
          AddScaled(OwnColumns(any, down.Slice(slot, 1)), share, OwnColumns(any, y.Slice(r, 1)));
        }
      }
    });
    pass.CompleteRows(y, RankSplit());
  }

  // Floats of the arena that Add needs if `between` needs that many.
  static constexpr size_t ScratchFloats(const PassSize& size, size_t between) {
    const size_t slots = size.rows * kUsed;
    return Slots::ScratchFloats(size.rows) + Mlp::kInputs * Arena::Floats(slots, kHidden) +
           Arena::Floats(slots, Width(size.model_dim)) +
           std::max(between, Pass::OperandFloats(slots, kHidden));
  }

  // Counts only as many experts as a token uses. What enters their last products is gathered
  // together, and of these the sum.
  TokenWork Work() const {
    const TokenWork one = weights.front().Work();
    const double sum = WorkOfGathered({&weights.front().down}).gathered;
    TokenWork work;
    for (size_t i = 0; i < kUsed; ++i) work += one;
    work.collectives = one.collectives;
    work.gathered -= (kUsed - 1) * sum;
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
