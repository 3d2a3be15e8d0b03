// The mixture of experts.
#ifndef INLAY_GEMMA_LIKE_LAYERS_MOE_MLP_H_
#define INLAY_GEMMA_LIKE_LAYERS_MOE_MLP_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "configs/layers/moe_mlp.h"
#include "gemma_like/layer_kind.h"
#include "gemma_like/layers/expert_mlp.h"
#include "gemma_like/layers/experts.h"
#include "ops/router.h"
#include "ops/row_ops.h"

namespace inlay {

// A row's sum begins with the shared expert; the others follow in ascending order. If they work in
// a dimension of their own, they are summed there, in this order, and the sum is one term.
template <MoeShape kShape, Activation kActivation>
struct LayerKind<MoeMlp<kShape, kActivation>> {
  static constexpr size_t kExperts = kShape.experts;
  static constexpr size_t kUsed = kShape.used_experts;
  static constexpr bool kHasShared = kShape.shared_hidden > 0;
  static constexpr bool kGated = kShape.shared_gate;
  static constexpr bool kBiased = kShape.routing == Routing::kBiasedLogistic;
  static constexpr size_t kLatent = kShape.latent;
  using Shared = ExpertMlp<kActivation>;

  struct Weights {
    PackedMatrix router;             // [kExperts, model_dim]
    std::vector<float> router_bias;  // [kExperts]; empty unless the routing has one
    PackedMatrix latent_down;        // [kLatent, model_dim]; empty if kLatent is 0
    PackedMatrix latent_up;          // [model_dim, kLatent]; likewise
    Experts<kShape, kActivation> experts;
    typename Shared::Weights shared;  // empty without a shared expert
    PackedMatrix shared_gate;         // [1, model_dim]; empty unless the shared expert has one
  };

  template <class Binder>
  static void Bind(LayerBinder<Binder>& b, Weights& w) {
    w.router = b.Matrix("ffn_gate_inp.weight", kExperts, b.model_dim(), TensorUse::kRouter);
    if constexpr (kBiased) {
      w.router_bias = b.Vector("exp_probs_b.bias", TensorUse::kBias, kExperts);
    }
    if constexpr (kLatent > 0) {
      w.latent_down = b.Matrix("ffn_latent_down.weight", kLatent, b.model_dim());
      w.latent_up = b.Matrix("ffn_latent_up.weight", b.model_dim(), kLatent, TensorUse::kBranchEnd);
    }
    w.experts.Bind(b, kLatent > 0 ? TensorUse::kMatrix : TensorUse::kBranchEnd);
    if constexpr (kHasShared) {
      w.shared.Bind(b, "_shexp.weight", kShape.shared_hidden, TensorUse::kBranchShare);
    }
    if constexpr (kGated) {
      w.shared_gate = b.Matrix("ffn_gate_inp_shexp.weight", 1, b.model_dim(), TensorUse::kRouter);
    }
  }

  static OperandForms InputForms(const Weights& w) {
    OperandForms forms = OperandForms::For({&w.router});
    if constexpr (kLatent > 0) {
      forms = forms | OperandForms::For({&w.latent_down});
    } else {
      forms = forms | w.experts.InputForms();
    }
    if constexpr (kHasShared) {
      for (const PackedMatrix* input : Shared::Inputs(w.shared)) {
        forms = forms | OperandForms::For({input});
      }
    }
    if constexpr (kGated) forms = forms | OperandForms::For({&w.shared_gate});
    return forms;
  }
  static void ListProducts(const Weights& w, Schedule& schedule) {
    if constexpr (kGated) {
      schedule.Add({&w.router, &w.shared_gate});
    } else {
      schedule.Add({&w.router});
    }
    if constexpr (kLatent > 0) schedule.Add({&w.latent_down});
    schedule.Add({});  // the experts' inputs
    if constexpr (kHasShared) w.shared.ListProducts(schedule);
    schedule.Add({});  // the experts' down
    if constexpr (kLatent > 0) schedule.Add({&w.latent_up});
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
      for (size_t r = begin; r < end; ++r) Choose(weights, shares.Row(r));
    });
    const auto add_shared = [&] {
      if constexpr (kHasShared) Shared::Forward(weights.shared, x, y, pass);
    };
    const auto start = [&](size_t r) {
      if constexpr (!kHasShared) std::fill_n(y.Row(r), y.cols, 0.0f);
      if constexpr (kGated) Scale(*shared_shares.Row(r), y.Slice(r, 1));
    };
    if constexpr (kLatent > 0) {
      AddInLatent(weights, x, shares, y, pass, add_shared, start);
    } else {
      weights.experts.Add(shares, x, y, pass, add_shared, start);
    }
  }

  static constexpr size_t ScratchFloats(const PassSize& size) {
    const size_t shared =
        kHasShared ? Shared::ScratchFloats(size.rows, size_t{kShape.shared_hidden}) : 0;
    const size_t experts = Experts<kShape, kActivation>::ScratchFloats(size, shared);
    return Arena::Floats(size.rows, kExperts) + Arena::Floats(size.rows, kGated ? 1 : 0) +
           (kLatent > 0 ? LatentFloats(size, experts) : experts);
  }

  static TokenWork Work(const Weights& w, RankShare) {
    TokenWork work = WorkOfGathered({&w.router});
    if constexpr (kLatent > 0) {
      work += WorkOfGathered({&w.latent_down});
      work += WorkOfGathered({&w.latent_up});
    }
    if constexpr (kGated) work += WorkOf({&w.shared_gate});  // one row, which each rank has
    work += w.experts.Work();
    if constexpr (kHasShared) work += w.shared.Work();
    return work;
  }

  static std::string Describe() {
    return absl::StrCat("moe: ", kUsed, " of ", kExperts, " experts of ", kShape.hidden,
                        kLatent > 0 ? absl::StrCat(" in ", kLatent) : "", ", shared ",
                        kShape.shared_hidden);
  }

 private:
  // Replaces the router's logits for one row by what each expert's output is multiplied by.
  static void Choose(const Weights& w, float* logits) {
    if constexpr (kBiased) {
      constexpr ExpertGroups kGroups{.count = kShape.groups, .used = kShape.used_groups};
      KeepTopBiasedLogistic(kUsed, w.router_bias.data(), logits, kExperts, kGroups,
                            kShape.scale.value());
    } else {
      KeepTopSoftmax(kUsed, logits, kExperts);
    }
  }

  // y [rows, model_dim], as `between` and `start` have made it, += up(the experts' sum for
  // down(x)).
  template <class Between, class Start>
  static void AddInLatent(const Weights& w, const Operand& x, ConstFloatRows shares, FloatRows y,
                          Pass& pass, const Between& between, const Start& start) {
    Arena& arena = pass.arena;
    const FloatRows latent = arena.Rows(y.rows, kLatent);
    pass.Multiply(w.latent_down, x, latent);
    const Operand latent_x = pass.MakeOperand(latent, w.experts.InputForms());
    const FloatRows sum = arena.Rows(y.rows, kLatent);
    w.experts.Add(shares, latent_x, sum, pass, between,
                  [&](size_t r) { std::fill_n(sum.Row(r), kLatent, 0.0f); });
    const Operand latent_y = pass.MakeOperand(sum, OperandForms::For({&w.latent_up}));
    const FloatRows up = arena.Rows(y.rows, y.cols);
    pass.Multiply(w.latent_up, latent_y, up);
    ForRows(pass.team, y.rows, y.cols, [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) {
        start(r);
        AddScaled(up.Slice(r, 1), 1, y.Slice(r, 1));
      }
    });
  }
  static constexpr size_t LatentFloats(const PassSize& size, size_t experts) {
    return 2 * Arena::Floats(size.rows, kLatent) + Pass::OperandFloats(size.rows, kLatent) +
           std::max(experts, Pass::OperandFloats(size.rows, kLatent) +
                                 Arena::Floats(size.rows, size.model_dim));
  }
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_LAYERS_MOE_MLP_H_
