// A selective state space layer (Dao & Gu 2024): the config-only half.
#ifndef INLAY_CONFIGS_LAYERS_MAMBA2_H_
#define INLAY_CONFIGS_LAYERS_MAMBA2_H_

#include <array>
#include <string_view>

#include "configs/layer.h"

namespace inlay {

struct Mamba2Shape {
  int heads = 0;
  int head_dim = 0;
  int state_dim = 0;
  int groups = 1;
  int conv_width = 4;
  bool normed = true;  // RMSNorm of the gated output, over each group's channels
};

template <Mamba2Shape kShape_>
struct Mamba2 : MixerPart {
  static constexpr Mamba2Shape kShape = kShape_;
  static constexpr std::string_view kName = "mamba2";

  static constexpr std::array<int, 5> Numbers() {
    constexpr int kConv = kShape.normed ? kShape.conv_width : -kShape.conv_width;
    return {kShape.heads, kShape.head_dim, kShape.state_dim, kShape.groups, kConv};
  }

  static constexpr bool Check() {
    static_assert(
        kShape.heads > 0 && kShape.head_dim > 0 && kShape.state_dim > 0 && kShape.groups > 0,
        "heads, head_dim, state_dim and groups must be positive");
    static_assert(kShape.groups <= 0 || kShape.heads % kShape.groups == 0,
                  "heads must be a multiple of groups");
    static_assert(kShape.conv_width >= 2, "conv_width must be at least 2");
    return true;
  }

  template <class Config, class Visitor>
  static constexpr void Metadata(Visitor& v) {
    v.Int("ssm.conv_kernel", kShape.conv_width);
    v.Int("ssm.inner_size", kShape.heads * kShape.head_dim);
    v.Int("ssm.state_size", kShape.state_dim);
    v.Int("ssm.time_step_rank", kShape.heads);
    v.Int("ssm.group_count", kShape.groups);
  }
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_LAYERS_MAMBA2_H_
