// What a conversation costs in memory, computed at compile time from the layers' types.
#ifndef INLAY_CACHE_CACHE_PLAN_H_
#define INLAY_CACHE_CACHE_PLAN_H_

#include <cstddef>

#include "cache/cache_bytes.h"
#include "cache/layers.h"
#include "cache/storage.h"
#include "cache/storage_policy.h"
#include "configs/config.h"

namespace inlay {

template <class L, class Policy>
constexpr CacheBytes LayerCacheBytes() {
  CacheBytes total;
  ForEachMixer<L>([&]<class M>(size_t) { total += MixerStorage<M>::template Bytes<Policy>(); });
  return total;
}

template <ModelConfig Config, class Policy = F32Storage>
constexpr CacheBytes ConfigCacheBytes() {
  CacheBytes total;
  ForEachLayer<Config>([&]<class L>(int) { total += LayerCacheBytes<L, Policy>(); });
  return total;
}

// Bytes of the cache that the token at position `length` reads.
template <ModelConfig Config, class Policy = F32Storage>
constexpr size_t ConfigCacheBytesRead(size_t length) {
  size_t bytes = 0;
  ForEachLayer<Config>([&]<class L>(int) {
    ForEachMixer<L>(
        [&]<class M>(size_t) { bytes += MixerStorage<M>::template BytesRead<Policy>(length); });
  });
  return bytes;
}

// The index of the last layer with cache storage, -1 if there is none. After it, only the rows
// whose logits are requested need to be computed.
template <ModelConfig Config>
constexpr int LastLayerWithStorage() {
  int last = -1;
  ForEachLayer<Config>([&]<class L>(int index) {
    ForEachMixer<L>([&]<class M>(size_t) {
      if (!std::is_same_v<typename MixerStorage<M>::Type, StorageTuple<>>) last = index;
    });
  });
  return last;
}

}  // namespace inlay

#endif  // INLAY_CACHE_CACHE_PLAN_H_
