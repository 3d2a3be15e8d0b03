// What Mamba2 keeps of the past: the cache half of the kind.
#ifndef INLAY_CACHE_LAYERS_MAMBA2_H_
#define INLAY_CACHE_LAYERS_MAMBA2_H_

#include <cstddef>

#include "cache/cache_bytes.h"
#include "cache/chunk_log.h"
#include "cache/input_window.h"
#include "cache/storage.h"
#include "configs/layers/mamba2.h"
#include "ops/ssd.h"

namespace inlay {

// The inputs of the convolution; states and the log of x, B, dt and decays.
template <Mamba2Shape kShape>
struct MixerStorage<Mamba2<kShape>> {
  using Type = StorageTuple<InputWindow, ChunkLog<SsdLog>>;

  static constexpr SsdShape kSsd{.heads = kShape.heads,
                                 .head_dim = kShape.head_dim,
                                 .groups = kShape.groups,
                                 .state_dim = kShape.state_dim};
  static constexpr size_t kTail = kShape.conv_width - 1;

  template <class Policy>
  static Type Make() {
    return Type(InputWindow(kSsd.XbcDim(), kTail, Policy::kRewindDepth), ChunkLog<SsdLog>(kSsd));
  }

  template <class Policy>
  static constexpr CacheBytes Bytes() {
    constexpr size_t kWindow = InputWindow::BlockBytes(kSsd.XbcDim(), kTail, Policy::kRewindDepth);
    constexpr ChunkLogShape kLayout = ChunkLog<SsdLog>::LayoutOf(kSsd);
    // Two chunks are kept; an append writes up to two more beside them, and a long one a second
    // window.
    constexpr size_t kChunks = 2 * (kLayout.StateBytes() + kLayout.LogBytes());
    return {.constant = kWindow + kChunks,
            .append = kWindow + kChunks,
            .snapshot = kWindow + kLayout.LogBytes()};
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
