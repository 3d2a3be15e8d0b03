// The mixture of gated experts.
#ifndef INLAY_GEMMA_LIKE_LAYERS_MOE_MLP_H_
#define INLAY_GEMMA_LIKE_LAYERS_MOE_MLP_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "configs/layers/moe_mlp.h"
#include "gemma_like/layer_kind.h"
#include "gemma_like/layers/gated_mlp.h"
#include "ops/router.h"
#include "ops/row_ops.h"

namespace inlay {

// Every pair of a row and an expert chosen for it is a slot; slots are ordered by expert, so that
// each expert's weights are read once for all of its rows. A row's sum runs over its experts in
// ascending order after the shared one, whatever the other rows chose.
template <MoeShape kShape, Activation kActivation>
struct LayerKind<MoeMlp<kShape, kActivation>> {
  static constexpr size_t kExperts = kShape.experts;
  static constexpr size_t kUsed = kShape.used_experts;
  static constexpr size_t kHidden = kShape.hidden;
  static constexpr bool kHasShared = kShape.shared_hidden > 0;
  static constexpr bool kGated = kShape.shared_gate;
  static constexpr bool kBiased = kShape.routing == Routing::kBiasedLogistic;

  struct Weights {
    PackedMatrix router;                // [kExperts, model_dim]
    std::vector<float> router_bias;     // [kExperts]; empty unless the routing has one
    std::vector<GatedWeights> experts;  // by index
    GatedWeights shared;                // empty without a shared expert
    PackedMatrix shared_gate;           // [1, model_dim]; empty unless the shared expert has one
  };

  template <class Binder>
  static void Bind(LayerBinder<Binder>& b, Weights& w) {
    w.router = b.Matrix("ffn_gate_inp.weight", kExperts, b.model_dim(), TensorUse::kRouter);
    if constexpr (kBiased) {
      w.router_bias = b.Vector("exp_probs_b.bias", TensorUse::kBias, kExperts);
    }
    w.experts.resize(kExperts);
    // One tensor holds a matrix of all experts.
    std::vector<std::vector<PackedMatrix>> gate_up = b.Stacked(
        "ffn_gate_up_exps.weight", kExperts,
        {{"ffn_gate_exps.weight", kHidden}, {"ffn_up_exps.weight", kHidden}}, b.model_dim());
    std::vector<PackedMatrix> down =
        b.Matrices("ffn_down_exps.weight", kExperts, b.model_dim(), kHidden, TensorUse::kBranchEnd);
    for (size_t e = 0; e < kExperts; ++e) {
      w.experts[e] = {.gate = std::move(gate_up[0][e]),
                      .up = std::move(gate_up[1][e]),
                      .down = std::move(down[e])};
    }
    if constexpr (kHasShared) {
      w.shared.Bind(b, "_shexp.weight", kShape.shared_hidden, TensorUse::kBranchShare);
    }
    if constexpr (kGated) {
      w.shared_gate = b.Matrix("ffn_gate_inp_shexp.weight", 1, b.model_dim(), TensorUse::kRouter);
    }
  }

  static OperandForms InputForms(const Weights& w) {
    OperandForms forms = OperandForms::For({&w.router, &w.experts[0].gate, &w.experts[0].up});
    if constexpr (kHasShared) forms = forms | OperandForms::For({&w.shared.gate, &w.shared.up});
    if constexpr (kGated) forms = forms | OperandForms::For({&w.shared_gate});
    return forms;
  }
  static void ListProducts(const Weights& w, Schedule& schedule) {
    if constexpr (kGated) {
      schedule.Add({&w.router, &w.shared_gate});
    } else {
      schedule.Add({&w.router});
    }
    schedule.Add({});  // the experts' gate and up
    if constexpr (kHasShared) w.shared.ListProducts(schedule);
    schedule.Add({});  // the experts' down
  }

  static void Forward(const Weights& weights, const Operand& x, FloatRows y, Pass& pass) {
    Arena& arena = pass.arena;
    Arena::Scope scope(arena);
    const size_t rows = y.rows;
    FloatRows shares = arena.Rows(rows, kExperts);  // of each expert in each row; 0 if not chosen
    FloatRows shared_shares = arena.Rows(rows, kGated ? 1 : 0);  // of the shared expert
    if constexpr (kGated) {
      const MatMulTask products[] = {{&weights.router, shares},
                                     {&weights.shared_gate, shared_shares}};
      pass.Multiply(products, x);
      Logistic(shared_shares);
    } else {
      pass.Multiply(weights.router, x, shares);
    }
    ForRows(pass.team, rows, 4 * kExperts, [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) {
        if constexpr (kBiased) {
          KeepTopBiasedLogistic(kUsed, weights.router_bias.data(), shares.Row(r), kExperts);
        } else {
          KeepTopSoftmax(kUsed, shares.Row(r), kExperts);
        }
      }
    });
    const Slots slots(shares, arena);
    FloatRows gate = arena.Rows(slots.count, kHidden);
    FloatRows up = arena.Rows(slots.count, kHidden);
    FloatRows down = arena.Rows(slots.count, y.cols);

    std::array<MatMulTask, 2 * kExperts> tasks;
    for (size_t e = 0; e < kExperts; ++e) {
      const int32_t* x_rows = slots.rows + slots.begin[e];
      tasks[2 * e] = {&weights.experts[e].gate, slots.Of(e, gate), x_rows};
      tasks[2 * e + 1] = {&weights.experts[e].up, slots.Of(e, up), x_rows};
    }
    pass.Multiply(tasks, x);
    if constexpr (kHasShared) GatedForward<kActivation>(weights.shared, x, y, pass);
    const Operand activated = ActivateForDown<kActivation>(gate, up, weights.experts[0].down, pass);
    for (size_t e = 0; e < kExperts; ++e) {
      tasks[e] = {&weights.experts[e].down, slots.Of(e, down), slots.numbers + slots.begin[e]};
    }
    pass.Multiply(std::span(tasks).first(kExperts), activated);
    ForRows(pass.team, rows, kUsed * y.cols, [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) {
        if constexpr (!kHasShared) std::fill_n(y.Row(r), y.cols, 0.0f);
        if constexpr (kGated) Scale(*shared_shares.Row(r), y.Slice(r, 1));
        for (size_t i = 0; i < kUsed && slots.of_row[r * kUsed + i] >= 0; ++i) {
          const size_t slot = static_cast<size_t>(slots.of_row[r * kUsed + i]);
          const float share = shares.Row(r)[slots.expert[slot]];
          AddScaled(down.Slice(slot, 1), share, y.Slice(r, 1));
        }
      }
    });
  }

  static constexpr size_t ScratchFloats(const PassSize& size) {
    const size_t slots = size.rows * kUsed;
    return Arena::Floats(size.rows, kExperts) + Arena::Floats(size.rows, kGated ? 1 : 0) +
           Slots::ScratchFloats(size.rows) + 2 * Arena::Floats(slots, kHidden) +
           Arena::Floats(slots, size.model_dim) +
           std::max(GatedScratchFloats(size.rows, kShape.shared_hidden),
                    Pass::OperandFloats(slots, kHidden));
  }

  // Counts only as many experts as a token uses.
  static TokenWork Work(const Weights& w) {
    TokenWork work = WorkOf(w.router);
    if constexpr (kGated) work += WorkOf(w.shared_gate);
    for (size_t i = 0; i < kUsed; ++i) work += w.experts.front().Work();
    if constexpr (kHasShared) work += w.shared.Work();
    return work;
  }

  static std::string Describe() {
    return absl::StrCat("moe: ", kUsed, " of ", kExperts, " experts of ", kHidden, ", shared ",
                        kShape.shared_hidden);
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

#endif  // INLAY_GEMMA_LIKE_LAYERS_MOE_MLP_H_
