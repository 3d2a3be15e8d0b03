// What a conversation costs in memory, at a rank or in one process, computed from the layers'
// types.
#ifndef INLAY_CACHE_CACHE_PLAN_H_
#define INLAY_CACHE_CACHE_PLAN_H_

#include <cstddef>
#include <type_traits>

#include "base/rank_share.h"
#include "cache/cache_bytes.h"
#include "cache/layers.h"
#include "cache/storage.h"
#include "cache/storage_policy.h"
#include "configs/config.h"
#include "configs/pattern.h"

namespace inlay {

template <class L, class Policy>
constexpr CacheBytes LayerCacheBytes(RankShare share = {}) {
  CacheBytes total;
  ForEachMixer<L>(
      [&]<class M>(size_t) { total += MixerStorage<M>::template Bytes<Policy>(share); });
  return total;
}

template <ModelConfig Config, class Policy = DefaultStorage>
constexpr CacheBytes ConfigCacheBytes(RankShare share = {}) {
  CacheBytes total;
  ForEachLayer<Config>([&]<class L>(int) { total += LayerCacheBytes<L, Policy>(share); });
  return total;
}

// Bytes of the cache that the token at position `length` reads at a rank.
template <ModelConfig Config, class Policy = DefaultStorage>
constexpr size_t ConfigCacheBytesRead(size_t length, RankShare share = {}) {
  size_t bytes = 0;
  ForEachLayer<Config>([&]<class L>(int) {
    ForEachMixer<L>([&]<class M>(size_t) {
      bytes += MixerStorage<M>::template BytesRead<Policy>(length, share);
    });
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
      constexpr bool kHasStorage = requires { sizeof(MixerStorage<M>); };
      static_assert(kHasStorage, "a mixer needs its MixerStorage from cache/layers.h");
      if constexpr (kHasStorage) {
        if (!std::is_same_v<typename MixerStorage<M>::Type, StorageTuple<>>) last = index;
      }
    });
  });
  return last;
}

}  // namespace inlay

#endif  // INLAY_CACHE_CACHE_PLAN_H_
