// The cache storage of Mamba2: the cache half of the layer kind.
#ifndef INLAY_CACHE_LAYERS_MAMBA2_H_
#define INLAY_CACHE_LAYERS_MAMBA2_H_

#include <cstddef>

#include "base/rank_share.h"
#include "cache/cache_bytes.h"
#include "cache/chunk_log.h"
#include "cache/input_window.h"
#include "cache/storage.h"
#include "configs/layers/mamba2.h"
#include "ops/ssd.h"

namespace inlay {

// The last inputs of the convolution; the states and the log of x, B, dt and decays.
template <Mamba2Shape kShape>
struct MixerStorage<Mamba2<kShape>> {
  using Type = StorageTuple<InputWindow, ChunkLog<SsdLog>>;

  static constexpr SsdShape kSsd{.heads = kShape.heads,
                                 .head_dim = kShape.head_dim,
                                 .groups = kShape.groups,
                                 .state_dim = kShape.state_dim};
  static constexpr size_t kTail = kShape.conv_width - 1;

  template <class Policy>
  static Type Make(RankShare) {
    return Type(InputWindow(kSsd.XbcDim(), kTail, Policy::kRewindDepth), ChunkLog<SsdLog>(kSsd));
  }

  template <class Policy>
  static constexpr CacheBytes Bytes() {
    CacheBytes bytes = InputWindow::Bytes(kSsd.XbcDim(), kTail, Policy::kRewindDepth);
    bytes += ChunkLog<SsdLog>::Bytes(kSsd);
    return bytes;
  }

  template <class Policy>
  static constexpr size_t BytesRead(size_t) {
    // The state, half a chunk of x and B on average, and the convolution's inputs.
    return (kSsd.StateElements() + kStateChunk / 2 * (kSsd.Inner() + kSsd.BcDim()) +
            kTail * kSsd.XbcDim()) *
           sizeof(float);
  }
};

}  // namespace inlay

#endif  // INLAY_CACHE_LAYERS_MAMBA2_H_
