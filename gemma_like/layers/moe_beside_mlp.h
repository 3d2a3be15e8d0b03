// A gated MLP beside a mixture of experts with norms of its own.
#ifndef INLAY_GEMMA_LIKE_LAYERS_MOE_BESIDE_MLP_H_
#define INLAY_GEMMA_LIKE_LAYERS_MOE_BESIDE_MLP_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "configs/layers/moe_beside_mlp.h"
#include "gemma_like/layer_kind.h"
#include "gemma_like/layers/experts.h"
#include "gemma_like/layers/gated_mlp.h"
#include "ops/router.h"
#include "ops/row_ops.h"

namespace inlay {

template <MoeShape kShape, int kHidden, Activation kActivation>
struct LayerKind<MoeBesideMlp<kShape, kHidden, kActivation>> {
  static constexpr size_t kExperts = kShape.experts;
  static constexpr size_t kUsed = kShape.used_experts;

  struct Weights {
    GatedWeights mlp;
    PackedMatrix router;             // [kExperts, model_dim]
    std::vector<float> router_norm;  // [model_dim], before the router
    Experts<kShape, kActivation> experts;
    std::vector<float> expert_scales;      // [kExperts]
    std::vector<float> experts_norm;       // [model_dim], before the experts
    std::vector<float> mlp_post_norm;      // [model_dim], after the MLP
    std::vector<float> experts_post_norm;  // [model_dim], after the experts
  };

  template <class Binder>
  static void Bind(LayerBinder<Binder>& b, Weights& w) {
    const auto norm = [&](absl::string_view tensor) {
      return b.Vector(tensor, TensorUse::kNorm, b.model_dim());
    };
    w.mlp.Bind(b, ".weight", kHidden, TensorUse::kBranchShare);
    w.router = b.Matrix("ffn_gate_inp.weight", kExperts, b.model_dim(), TensorUse::kRouter);
    w.router_norm = norm("ffn_gate_inp.scale");
    const float scale = 1 / std::sqrt(static_cast<float>(b.model_dim()));
    for (float& weight : w.router_norm) weight *= scale;
    w.experts.Bind(b, TensorUse::kBranchEnd);
    w.expert_scales = b.Vector("ffn_down_exps.scale", TensorUse::kNorm, kExperts);
    w.experts_norm = norm("pre_ffw_norm_2.weight");
    w.mlp_post_norm = norm("post_ffw_norm_1.weight");
    w.experts_post_norm = norm("post_ffw_norm_2.weight");
  }

  static OperandForms InputForms(const Weights& w) {
    return OperandForms::For({&w.mlp.gate, &w.mlp.up});
  }
  static void ListProducts(const Weights& w, Schedule& schedule) {
    schedule.Add({&w.router});
    schedule.Add({});  // the experts' gate and up
    w.mlp.ListProducts(schedule);
    schedule.Add({});  // the experts' down
  }

  static void Forward(const Weights& w, const Operand& x, ConstFloatRows stream, FloatRows y,
                      Pass& pass) {
    Arena& arena = pass.arena;
    Arena::Scope scope(arena);
    const FloatRows shares = arena.Rows(y.rows, kExperts);  // of each expert; 0 if not chosen
    Route(w, stream, shares, pass);
    const FloatRows normed = arena.Rows(y.rows, y.cols);
    const Operand experts_x =
        pass.MakeOperand(normed, w.experts.InputForms(), [&](size_t begin, size_t end) {
          RmsNorm(stream.Slice(begin, end - begin), w.experts_norm.data(), pass.norm_epsilon,
                  normed.Slice(begin, end - begin));
        });
    const FloatRows mlp = arena.Rows(y.rows, y.cols);
    w.experts.Add(
        shares, experts_x, y, pass, [&] { GatedForward<kActivation>(w.mlp, x, mlp, pass); },
        [&](size_t r) { std::fill_n(y.Row(r), y.cols, 0.0f); });
    ForRows(pass.team, y.rows, 4 * y.cols, [&](size_t begin, size_t end) {
      const FloatRows sum = y.Slice(begin, end - begin), more = mlp.Slice(begin, end - begin);
      RmsNorm(sum, w.experts_post_norm.data(), pass.norm_epsilon, sum);
      RmsNorm(more, w.mlp_post_norm.data(), pass.norm_epsilon, more);
      AddScaled(more, 1, sum);
    });
  }

  static constexpr size_t ScratchFloats(const PassSize& size) {
    const size_t experts =
        2 * Arena::Floats(size.rows, size.model_dim) +
        Pass::OperandFloats(size.rows, size.model_dim) +
        Experts<kShape, kActivation>::ScratchFloats(size, GatedScratchFloats(size.rows, kHidden));
    return Arena::Floats(size.rows, kExperts) + std::max(RouteFloats(size), experts);
  }

  // Counts only as many experts as a token uses.
  static TokenWork Work(const Weights& w, RankShare) {
    TokenWork work = WorkOfGathered({&w.router});
    work += w.mlp.Work();
    work += w.experts.Work();
    return work;
  }

  static std::string Describe() {
    return absl::StrCat("gated mlp ", kHidden, " beside moe: ", kUsed, " of ", kExperts,
                        " experts of ", kShape.hidden);
  }

 private:
  // What each expert's output is multiplied by, [rows, kExperts].
  static void Route(const Weights& w, ConstFloatRows stream, FloatRows shares, Pass& pass) {
    Arena::Scope scope(pass.arena);
    const FloatRows normed = pass.arena.Rows(stream.rows, stream.cols);
    const Operand x =
        pass.MakeOperand(normed, OperandForms::For({&w.router}), [&](size_t begin, size_t end) {
          RmsNorm(stream.Slice(begin, end - begin), w.router_norm.data(), pass.norm_epsilon,
                  normed.Slice(begin, end - begin));
        });
    pass.Multiply(w.router, x, shares);
    ForRows(pass.team, shares.rows, 4 * kExperts, [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) {
        float* const share = shares.Row(r);
        KeepTopSoftmax(kUsed, share, kExperts);
        // Of those chosen alone: 0 times a damaged file's infinity would be one expert more.
        for (size_t e = 0; e < kExperts; ++e) {
          if (share[e] != 0) share[e] *= w.expert_scales[e];
        }
      }
    });
  }
  static constexpr size_t RouteFloats(const PassSize& size) {
    return Arena::Floats(size.rows, size.model_dim) +
           Pass::OperandFloats(size.rows, size.model_dim);
  }
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_LAYERS_MOE_BESIDE_MLP_H_
