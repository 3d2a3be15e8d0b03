// A gated MLP beside a mixture of experts with norms of its own: the config-only half.
#ifndef INLAY_CONFIGS_LAYERS_MOE_BESIDE_MLP_H_
#define INLAY_CONFIGS_LAYERS_MOE_BESIDE_MLP_H_

#include <array>
#include <string_view>

#include "configs/layer.h"
#include "configs/layers/gated_mlp.h"
#include "configs/layers/moe_mlp.h"

namespace inlay {

// norm(mlp(norm(x))) + norm(experts(norm(x))), where x is the residual stream. The router, which
// chooses by the softmax, norms x itself too; the outputs of each expert are multiplied by a number
// of the file.
template <MoeShape kShape_, int kHidden_, Activation kActivation_>
struct MoeBesideMlp : MlpPart {
  static constexpr MoeShape kShape = kShape_;
  static constexpr int kHidden = kHidden_;  // of the MLP
  static constexpr Activation kActivation = kActivation_;
  static constexpr std::string_view kName = "moe beside mlp";
  static constexpr bool kReadsStream = true;

  static constexpr std::array<int, 5> Numbers() {
    return {kShape.experts, kShape.used_experts, kShape.hidden, kHidden,
            static_cast<int>(kActivation)};
  }

  static constexpr bool Check() {
    static_assert(kShape.shared_hidden == 0 && kShape.routing == Routing::kSoftmax,
                  "experts beside an MLP have no shared one and are chosen by the softmax");
    static_assert(kShape.latent == 0, "experts beside an MLP work in the model's dimension");
    return MoeMlp<kShape, kActivation>::Check() && GatedMlp<kHidden, kActivation>::Check();
  }

  // The key of one expert's hidden size is told by each family, as for MoeMlp.
  template <class Config, class Visitor>
  static constexpr void Metadata(Visitor& v) {
    GatedMlp<kHidden, kActivation>::template Metadata<Config>(v);
    v.Int("expert_count", kShape.experts, 0);
    v.Int("expert_used_count", kShape.used_experts, 0);
  }
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_LAYERS_MOE_BESIDE_MLP_H_
