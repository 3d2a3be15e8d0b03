// A branch for the input that a layer has of its own: the config-only half.
#ifndef INLAY_CONFIGS_LAYERS_GATED_INPUT_H_
#define INLAY_CONFIGS_LAYERS_GATED_INPUT_H_

#include <array>
#include <string_view>

#include "configs/layer.h"
#include "configs/layers/gated_mlp.h"

namespace inlay {

// out(activation(gate(x)) * e), where x is the residual stream, not normed, and e [kDim] the
// layer's part of what the model looks up and computes for each token (per-layer embeddings).
template <int kDim_, Activation kActivation_>
struct GatedInput : InputPart {
  static constexpr int kDim = kDim_;
  static constexpr Activation kActivation = kActivation_;
  static constexpr std::string_view kName = "gated input";

  static constexpr std::array<int, 2> Numbers() { return {kDim, static_cast<int>(kActivation)}; }

  static constexpr bool Check() {
    static_assert(kDim > 0, "the size of a layer's input must be positive");
    return true;
  }

  template <class Config, class Visitor>
  static constexpr void Metadata(Visitor& v) {
    v.Int("embedding_length_per_layer_input", kDim, 0);
  }
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_LAYERS_GATED_INPUT_H_
