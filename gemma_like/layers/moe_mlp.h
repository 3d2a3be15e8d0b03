// The mixture of gated experts.
#ifndef INLAY_GEMMA_LIKE_LAYERS_MOE_MLP_H_
#define INLAY_GEMMA_LIKE_LAYERS_MOE_MLP_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "configs/layers/moe_mlp.h"
#include "gemma_like/layer_kind.h"
#include "gemma_like/layers/experts.h"
#include "gemma_like/layers/gated_mlp.h"
#include "ops/router.h"
#include "ops/row_ops.h"

namespace inlay {

// A row's sum runs over its experts in ascending order after the shared one.
template <MoeShape kShape, Activation kActivation>
struct LayerKind<MoeMlp<kShape, kActivation>> {
  static constexpr size_t kExperts = kShape.experts;
  static constexpr size_t kUsed = kShape.used_experts;
  static constexpr bool kHasShared = kShape.shared_hidden > 0;
  static constexpr bool kGated = kShape.shared_gate;
  static constexpr bool kBiased = kShape.routing == Routing::kBiasedLogistic;

  struct Weights {
    PackedMatrix router;             // [kExperts, model_dim]
    std::vector<float> router_bias;  // [kExperts]; empty unless the routing has one
    Experts<kShape, kActivation> experts;
    GatedWeights shared;       // empty without a shared expert
    PackedMatrix shared_gate;  // [1, model_dim]; empty unless the shared expert has one
  };

  template <class Binder>
  static void Bind(LayerBinder<Binder>& b, Weights& w) {
    w.router = b.Matrix("ffn_gate_inp.weight", kExperts, b.model_dim(), TensorUse::kRouter);
    if constexpr (kBiased) {
      w.router_bias = b.Vector("exp_probs_b.bias", TensorUse::kBias, kExperts);
    }
    w.experts.Bind(b);
    if constexpr (kHasShared) {
      w.shared.Bind(b, "_shexp.weight", kShape.shared_hidden, TensorUse::kBranchShare);
    }
    if constexpr (kGated) {
      w.shared_gate = b.Matrix("ffn_gate_inp_shexp.weight", 1, b.model_dim(), TensorUse::kRouter);
    }
  }

  static OperandForms InputForms(const Weights& w) {
    OperandForms forms = OperandForms::For({&w.router}) | w.experts.InputForms();
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
    const auto add_shared = [&] {
      if constexpr (kHasShared) GatedForward<kActivation>(weights.shared, x, y, pass);
    };
    const auto start = [&](size_t r) {
      if constexpr (!kHasShared) std::fill_n(y.Row(r), y.cols, 0.0f);
      if constexpr (kGated) Scale(*shared_shares.Row(r), y.Slice(r, 1));
    };
    weights.experts.Add(shares, x, y, pass, add_shared, start);
  }

  static constexpr size_t ScratchFloats(const PassSize& size) {
    const size_t shared =
        kHasShared ? GatedScratchFloats(size.rows, size_t{kShape.shared_hidden}) : 0;
    return Arena::Floats(size.rows, kExperts) + Arena::Floats(size.rows, kGated ? 1 : 0) +
           Experts<kShape, kActivation>::ScratchFloats(size, shared);
  }

  static TokenWork Work(const Weights& w) {
    TokenWork work = WorkOf(w.router);
    if constexpr (kGated) work += WorkOf(w.shared_gate);
    work += w.experts.Work();
    if constexpr (kHasShared) work += w.shared.Work();
    return work;
  }

  static std::string Describe() {
    return absl::StrCat("moe: ", kUsed, " of ", kExperts, " experts of ", kShape.hidden,
                        ", shared ", kShape.shared_hidden);
  }
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_LAYERS_MOE_MLP_H_
