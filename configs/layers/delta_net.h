// A gated delta net (Yang, Kautz & Hatamizadeh 2024): the config-only half.
#ifndef INLAY_CONFIGS_LAYERS_DELTA_NET_H_
#define INLAY_CONFIGS_LAYERS_DELTA_NET_H_

#include <array>
#include <string_view>

#include "configs/layer.h"

namespace inlay {

struct DeltaNetShape {
  int key_heads = 0;    // of queries and keys
  int value_heads = 0;  // value head h reads the query and key head h % key_heads
  int head_dim = 0;     // of queries, keys and values
  int conv_width = 4;
};

// A linear attention whose state forgets by a decay of each head and token and moves what it
// returns for a key towards the key's value; its output is normalised per head and then gated.
template <DeltaNetShape kShape_>
struct DeltaNet : MixerPart {
  static constexpr DeltaNetShape kShape = kShape_;
  static constexpr std::string_view kName = "delta net";

  static constexpr std::array<int, 4> Numbers() {
    return {kShape.key_heads, kShape.value_heads, kShape.head_dim, kShape.conv_width};
  }

  static constexpr bool Check() {
    static_assert(kShape.key_heads > 0 && kShape.value_heads > 0 && kShape.head_dim > 0,
                  "key_heads, value_heads and head_dim must be positive");
    static_assert(kShape.key_heads <= 0 || kShape.value_heads % kShape.key_heads == 0,
                  "value_heads must be a multiple of key_heads");
    static_assert(kShape.conv_width >= 2,
                  "the width of a delta net's convolution must be at least 2");
    return true;
  }

  template <class Config, class Visitor>
  static constexpr void Metadata(Visitor& v) {
    v.Int("ssm.conv_kernel", kShape.conv_width);
    v.Int("ssm.inner_size", kShape.value_heads * kShape.head_dim);
    v.Int("ssm.state_size", kShape.head_dim);
    v.Int("ssm.time_step_rank", kShape.value_heads);
    v.Int("ssm.group_count", kShape.key_heads);
    // False: value head h reads the key head h / (value_heads / key_heads).
    v.Flag("ssm.v_head_reordered", true, true);
  }
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_LAYERS_DELTA_NET_H_
