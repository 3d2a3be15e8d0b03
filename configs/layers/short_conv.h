// The gated short convolution of LFM2: the config-only half.
#ifndef INLAY_CONFIGS_LAYERS_SHORT_CONV_H_
#define INLAY_CONFIGS_LAYERS_SHORT_CONV_H_

#include <array>
#include <string_view>

#include "configs/layer.h"

namespace inlay {

struct ShortConvShape {
  int channels = 0;  // the model dim
  int width = 3;     // tokens that an output depends on, its own included
};

// out(C * conv(B * X)), [B; C; X] being one projection of the input: a causal depthwise convolution
// of a few tokens between two gates.
template <ShortConvShape kShape_>
struct ShortConv : MixerPart {
  static constexpr ShortConvShape kShape = kShape_;
  static constexpr std::string_view kName = "conv";

  static constexpr std::array<int, 2> Numbers() { return {kShape.channels, kShape.width}; }

  static constexpr bool Check() {
    static_assert(kShape.channels > 0, "the channels of a short convolution must be positive");
    static_assert(kShape.width >= 2, "the width of a short convolution must be at least 2");
    return true;
  }

  template <class Config, class Visitor>
  static constexpr void Metadata(Visitor& v) {
    static_assert(kShape.channels == Config::kModelDim,
                  "the channels of a short convolution are the model dim");
    v.Int("shortconv.l_cache", kShape.width);
  }
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_LAYERS_SHORT_CONV_H_
