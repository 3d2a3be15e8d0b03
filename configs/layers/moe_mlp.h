// A mixture of experts: the config-only half.
#ifndef INLAY_CONFIGS_LAYERS_MOE_MLP_H_
#define INLAY_CONFIGS_LAYERS_MOE_MLP_H_

#include <array>
#include <string_view>

#include "configs/layer.h"
#include "configs/layers/gated_mlp.h"
#include "configs/math.h"

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
  // The experts are in `groups` groups of neighbours, of which a token uses those `used_groups`
  // whose two largest scores have the largest sums.
  int groups = 1;
  int used_groups = 1;
  Ratio scale{};  // what the weights of the chosen experts are multiplied by
  // The dimension in which the experts work, between two matrices that all share: their input is
  // down(x) and the sum of their outputs becomes up(sum). The router and the shared expert see x.
  // 0: the model's dimension, without these matrices.
  int latent = 0;
};

// A router chooses `used_experts` MLPs per token and weighs them; the shared expert is added with
// weight 1 or that of its gate. MLPs are gated unless the activation is the squared ReLU.
template <MoeShape kShape_, Activation kActivation_>
struct MoeMlp : MlpPart {
  static constexpr MoeShape kShape = kShape_;
  static constexpr Activation kActivation = kActivation_;
  static constexpr std::string_view kName = "moe";

  // Mixtures without groups, scale and latent dimension keep the fingerprints that they had before
  // there were these.
  static constexpr auto Numbers() {
    constexpr int kKinds = static_cast<int>(kActivation) + 16 * static_cast<int>(kShape.routing) +
                           256 * int{kShape.shared_gate};
    constexpr std::array<int, 5> kNumbers = {kShape.experts, kShape.used_experts, kShape.hidden,
                                             kShape.shared_hidden, kKinds};
    if constexpr (kShape.groups == 1 && kShape.scale.value() == 1 && kShape.latent == 0) {
      return kNumbers;
    } else {
      return std::array<int, 10>{
          kNumbers[0],   kNumbers[1],        kNumbers[2],      kNumbers[3],      kNumbers[4],
          kShape.groups, kShape.used_groups, kShape.scale.num, kShape.scale.den, kShape.latent};
    }
  }

  static constexpr bool Check() {
    static_assert(kShape.hidden > 0, "the hidden size of an expert must be positive");
    static_assert(kShape.used_experts >= 1 && kShape.used_experts <= kShape.experts,
                  "used_experts must be between 1 and experts");
    static_assert(kShape.shared_hidden >= 0,
                  "the shared expert's hidden size must not be negative");
    static_assert(!kShape.shared_gate || kShape.shared_hidden > 0,
                  "the gate of a shared expert needs a shared expert");
    static_assert(kShape.used_groups >= 1 && kShape.used_groups <= kShape.groups,
                  "used_groups must be between 1 and groups");
    constexpr bool kGrouped = kShape.used_groups >= 1 && kShape.used_groups < kShape.groups;
    constexpr int kOfGroup = kGrouped ? kShape.experts / kShape.groups : 0;
    static_assert(!kGrouped || (kShape.groups <= 64 && kShape.experts == kOfGroup * kShape.groups),
                  "experts must be a multiple of groups, of which there are at most 64");
    static_assert(!kGrouped || kOfGroup >= 2, "a group of experts must have at least two");
    static_assert(!kGrouped || kShape.used_experts <= kOfGroup * kShape.used_groups,
                  "the groups that a token uses must have used_experts experts");
    static_assert(kShape.routing == Routing::kBiasedLogistic ||
                      (kShape.groups == 1 && kShape.scale.value() == 1),
                  "groups of experts and a scale are of the biased logistic routing");
    static_assert(kShape.latent >= 0, "the latent dimension of experts must not be negative");
    return true;
  }

  // The key of one expert's hidden size differs between architectures, so each family's Metadata
  // has it.
  template <class Config, class Visitor>
  static constexpr void Metadata(Visitor& v) {
    v.Int("expert_count", kShape.experts, 0);
    v.Int("expert_used_count", kShape.used_experts, 0);
    // Without the key there is no shared expert, but one with a gate is part of its architecture,
    // and the shapes of its tensors say its size.
    v.Int("expert_shared_feed_forward_length", kShape.shared_hidden,
          kShape.shared_gate ? kShape.shared_hidden : 0);
  }
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_LAYERS_MOE_MLP_H_
