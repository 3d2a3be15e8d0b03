// The MLP with a squared ReLU and without a gate: the config-only half.
#ifndef INLAY_CONFIGS_LAYERS_SQUARED_RELU_MLP_H_
#define INLAY_CONFIGS_LAYERS_SQUARED_RELU_MLP_H_

#include <array>
#include <string_view>

#include "configs/layer.h"

namespace inlay {

// down(max(up(x), 0)^2) (So et al. 2021, "Primer").
template <int kHidden_>
struct SquaredReluMlp : MlpPart {
  static constexpr int kHidden = kHidden_;
  static constexpr std::string_view kName = "squared relu mlp";

  static constexpr std::array<int, 1> Numbers() { return {kHidden}; }

  static constexpr bool Check() {
    static_assert(kHidden > 0, "the hidden size of a squared ReLU MLP must be positive");
    return true;
  }

  // Layers without it have 0.
  template <class Config, class Visitor>
  static constexpr void Metadata(Visitor& v) {
    v.PerLayer("feed_forward_length", kHidden, 0);
  }
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_LAYERS_SQUARED_RELU_MLP_H_
