// Describes a config's layers and its conversations' memory.
#ifndef INLAY_GEMMA_LIKE_MODEL_DESCRIBE_H_
#define INLAY_GEMMA_LIKE_MODEL_DESCRIBE_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "cache/cache_plan.h"
#include "configs/config.h"
#include "configs/pattern.h"
#include "gemma_like/layers.h"
#include "gemma_like/model/description.h"
#include "ops/attention/kv_type.h"

namespace inlay {

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
  std::string text = "no mlp";
  if constexpr (L::kHasMlp) text = LayerKind<typename L::Mlp>::Describe();
  if constexpr (L::kHasInput)
    absl::StrAppend(&text, ", ", LayerKind<typename L::Input>::Describe());
  return text;
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

// The memory is that of conversations with row type `type`.
template <ModelConfig Config>
ConfigDescription Describe(KvType type) {
  return WithStorage(
      type, []<class Policy>(Policy) { return describe_internal::DescribeWith<Config, Policy>(); });
}

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_MODEL_DESCRIBE_H_
