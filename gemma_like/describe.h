// A config's layers and its conversations' memory, for people and tools to read.
#ifndef INLAY_GEMMA_LIKE_DESCRIBE_H_
#define INLAY_GEMMA_LIKE_DESCRIBE_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cache/cache_plan.h"
#include "configs/config.h"
#include "configs/pattern.h"
#include "gemma_like/layers.h"
#include "ops/attention.h"

namespace inlay {

struct LayerDescription {
  std::string mixer;  // "sliding attention 64: 4 heads of 64, 2 kv"; several with " + " between
  std::string mlp;    // "gated mlp 640"
  CacheBytes cache;
};

struct ConfigDescription {
  std::vector<LayerDescription> layers;
  CacheBytes cache;  // of all layers
};

namespace describe_internal {

template <class L>
std::string DescribeMixers() {
  std::string text;
  ForEachMixer<L>([&]<class M>(size_t) {
    absl::StrAppend(&text, text.empty() ? "" : " + ", LayerKind<M>::Describe());
  });
  return text.empty() ? "no mixer" : text;
}

template <class L>
std::string DescribeMlp() {
  if constexpr (L::kHasMlp) return LayerKind<typename L::Mlp>::Describe();
  return "no mlp";
}

template <ModelConfig Config, class Policy>
ConfigDescription DescribeWith() {
  ConfigDescription description;
  ForEachLayer<Config>([&]<class L>(int) {
    description.layers.push_back({.mixer = DescribeMixers<L>(),
                                  .mlp = DescribeMlp<L>(),
                                  .cache = LayerCacheBytes<L, Policy>()});
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
