// A mixture of gated experts: the config-only half.
#ifndef INLAY_CONFIGS_LAYERS_MOE_MLP_H_
#define INLAY_CONFIGS_LAYERS_MOE_MLP_H_

#include <array>
#include <string_view>

#include "configs/layer.h"
#include "configs/layers/gated_mlp.h"

namespace inlay {

// How the router's logits choose experts and weigh them.
enum class Routing {
  kSoftmax,  // the largest logits, by the softmax over those chosen
  // The largest logistic(logit) + bias, where the file stores a bias for each expert; by the
  // logistics of those chosen, without the bias, divided by their sum.
  kBiasedLogistic,
};

struct MoeShape {
  int experts = 0;
  int used_experts = 0;   // chosen per token
  int hidden = 0;         // of one expert
  int shared_hidden = 0;  // of the expert that every token passes; 0: none
  // The shared expert's output is multiplied by a logistic that a row of its own gives each token.
  bool shared_gate = false;
  Routing routing = Routing::kSoftmax;
};

// A router chooses `used_experts` gated MLPs per token and weighs them; the shared expert is added
// with weight 1 or that of its gate.
template <MoeShape kShape_, Activation kActivation_>
struct MoeMlp : MlpPart {
  static constexpr MoeShape kShape = kShape_;
  static constexpr Activation kActivation = kActivation_;
  static constexpr std::string_view kName = "moe";

  static constexpr std::array<int, 5> Numbers() {
    constexpr int kKinds = static_cast<int>(kActivation) + 16 * static_cast<int>(kShape.routing) +
                           256 * int{kShape.shared_gate};
    return {kShape.experts, kShape.used_experts, kShape.hidden, kShape.shared_hidden, kKinds};
  }

  static constexpr bool Check() {
    static_assert(kShape.hidden > 0, "the hidden size of an expert must be positive");
    static_assert(kShape.used_experts >= 1 && kShape.used_experts <= kShape.experts,
                  "used_experts must be between 1 and experts");
    static_assert(kShape.shared_hidden >= 0,
                  "the shared expert's hidden size must not be negative");
    static_assert(!kShape.shared_gate || kShape.shared_hidden > 0,
                  "the gate of a shared expert needs a shared expert");
    return true;
  }

  // The key of one expert's hidden size differs between architectures, so each family's Metadata
  // has it.
  template <class Config, class Visitor>
  static constexpr void Metadata(Visitor& v) {
    v.Int("expert_count", kShape.experts, 0);
    v.Int("expert_used_count", kShape.used_experts, 0);
    v.Int("expert_shared_feed_forward_length", kShape.shared_hidden, 0);
  }
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_LAYERS_MOE_MLP_H_
