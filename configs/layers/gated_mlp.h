// The gated MLP: the config-only half.
#ifndef INLAY_CONFIGS_LAYERS_GATED_MLP_H_
#define INLAY_CONFIGS_LAYERS_GATED_MLP_H_

#include <array>
#include <string_view>

#include "configs/layer.h"

namespace inlay {

// The function that is applied to the gate of a gated MLP; kSquaredRelu, max(x, 0)^2, is that of
// MLPs without a gate.
enum class Activation { kGeluTanh, kSilu, kSquaredRelu };

// down(activation(gate(x)) * up(x)).
template <int kHidden_, Activation kActivation_>
struct GatedMlp : MlpPart {
  static constexpr int kHidden = kHidden_;
  static constexpr Activation kActivation = kActivation_;
  static constexpr std::string_view kName = "gated mlp";

  static constexpr std::array<int, 2> Numbers() { return {kHidden, static_cast<int>(kActivation)}; }

  static constexpr bool Check() {
    static_assert(kHidden > 0, "the hidden size of a gated MLP must be positive");
    static_assert(kActivation != Activation::kSquaredRelu, "a squared ReLU MLP has no gate");
    return true;
  }

  template <class Config, class Visitor>
  static constexpr void Metadata(Visitor& v) {
    v.PerLayer("feed_forward_length", kHidden);
  }
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_LAYERS_GATED_MLP_H_
