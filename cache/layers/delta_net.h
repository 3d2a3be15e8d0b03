// The cache storage of a gated delta net: the cache half of the layer kind.
#ifndef INLAY_CACHE_LAYERS_DELTA_NET_H_
#define INLAY_CACHE_LAYERS_DELTA_NET_H_

#include <cstddef>

#include "base/rank_share.h"
#include "cache/cache_bytes.h"
#include "cache/chunk_log.h"
#include "cache/input_window.h"
#include "cache/storage.h"
#include "configs/layers/delta_net.h"
#include "ops/delta_rule.h"

namespace inlay {

// The last inputs of the convolution; the states and the log of keys, corrections and decays.
template <DeltaNetShape kShape>
struct MixerStorage<DeltaNet<kShape>> {
  using Type = StorageTuple<InputWindow, ChunkLog<DeltaLog>>;

  static constexpr DeltaShape kDelta{.key_heads = kShape.key_heads,
                                     .value_heads = kShape.value_heads,
                                     .head_dim = kShape.head_dim};
  static constexpr size_t kTail = kShape.conv_width - 1;

  template <class Policy>
  static Type Make(RankShare) {
    return Type(InputWindow(kDelta.QkvDim(), kTail, Policy::kRewindDepth),
                ChunkLog<DeltaLog>(kDelta));
  }

  template <class Policy>
  static constexpr CacheBytes Bytes() {
    CacheBytes bytes = InputWindow::Bytes(kDelta.QkvDim(), kTail, Policy::kRewindDepth);
    bytes += ChunkLog<DeltaLog>::Bytes(kDelta);
    return bytes;
  }

  template <class Policy>
  static constexpr size_t BytesRead(size_t) {
    // The state, half a chunk of keys and corrections on average, and the convolution's inputs.
    return (kDelta.StateElements() + kStateChunk / 2 * (kDelta.KeyDim() + kDelta.Inner()) +
            kTail * kDelta.QkvDim()) *
           sizeof(float);
  }
};

}  // namespace inlay

#endif  // INLAY_CACHE_LAYERS_DELTA_NET_H_
