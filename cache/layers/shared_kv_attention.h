// The cache half of attention to the keys and values of an earlier layer: it stores nothing.
#ifndef INLAY_CACHE_LAYERS_SHARED_KV_ATTENTION_H_
#define INLAY_CACHE_LAYERS_SHARED_KV_ATTENTION_H_

#include <cstddef>

#include "base/rank_share.h"
#include "cache/cache_bytes.h"
#include "cache/layers/attention.h"
#include "cache/storage.h"
#include "configs/layers/shared_kv_attention.h"

namespace inlay {

template <class Owner>
struct MixerStorage<SharedKvAttention<Owner>> {
  using Type = StorageTuple<>;

  template <class Policy>
  static Type Make(RankShare) {
    return {};
  }
  template <class Policy>
  static constexpr CacheBytes Bytes(RankShare) {
    return {};
  }
  template <class Policy>
  static constexpr size_t BytesRead(size_t length, RankShare share) {
    return MixerStorage<Owner>::template BytesRead<Policy>(length, share);
  }
};

}  // namespace inlay

#endif  // INLAY_CACHE_LAYERS_SHARED_KV_ATTENTION_H_
