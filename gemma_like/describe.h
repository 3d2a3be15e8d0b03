// A config's layers and its conversations' memory, for people and tools to read.
#ifndef INLAY_GEMMA_LIKE_DESCRIBE_H_
#define INLAY_GEMMA_LIKE_DESCRIBE_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cache/cache_plan.h"
#include "configs/config.h"
#include "configs/pattern.h"
#include "ops/attention.h"

namespace inlay {

struct LayerDescription {
  std::string mixer;  // "sliding attention 64: 4 heads of 64, 2 kv"
  std::string mlp;    // "gated mlp 640"
  CacheBytes cache;
};

struct ConfigDescription {
  std::vector<LayerDescription> layers;
  CacheBytes cache;  // of all layers
};

namespace describe_internal {

template <class Layer>
std::string DescribeMixer() {
  if constexpr (kIsAttention<Layer>) {
    constexpr AttentionShape kShape = Layer::kShape;
    std::string window;
    if constexpr (Layer::kWindow != 0) window = absl::StrCat(" ", Layer::kWindow);
    return absl::StrCat(Layer::kWindow == 0 ? "full attention" : "sliding attention", window, ": ",
                        kShape.heads, " heads of ", kShape.head_dim, ", ", kShape.kv_heads, " kv");
  } else {
    constexpr Mamba2Shape kShape = Layer::kShape;
    return absl::StrCat("mamba2: ", kShape.heads, " heads of ", kShape.head_dim, ", state ",
                        kShape.state_dim, ", ", kShape.groups,
                        kShape.groups == 1 ? " group" : " groups", ", conv ", kShape.conv_width);
  }
}

template <class Mlp>
std::string DescribeMlp() {
  if constexpr (Mlp::kKind == MlpKind::kGated) {
    return absl::StrCat("gated mlp ", Mlp::kHidden);
  } else if constexpr (Mlp::kKind == MlpKind::kMoe) {
    return absl::StrCat("moe: ", Mlp::kShape.used_experts, " of ", Mlp::kShape.experts,
                        " experts of ", Mlp::kShape.hidden, ", shared ", Mlp::kShape.shared_hidden);
  } else {
    return "no mlp";
  }
}

template <ModelConfig Config, class Policy>
ConfigDescription DescribeWith() {
  ConfigDescription description;
  ForEachLayer<Config>([&]<class Layer>(int) {
    description.layers.push_back({.mixer = DescribeMixer<Layer>(),
                                  .mlp = DescribeMlp<typename Layer::Mlp>(),
                                  .cache = LayerCacheBytes<Layer, Policy>()});
  });
  description.cache = ConfigCacheBytes<Config, Policy>();
  return description;
}

}  // namespace describe_internal

// Of conversations whose rows are stored as `type`.
template <ModelConfig Config>
ConfigDescription Describe(KvType type) {
  return WithStorage(
      type, []<class Policy>(Policy) { return describe_internal::DescribeWith<Config, Policy>(); });
}

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_DESCRIBE_H_
