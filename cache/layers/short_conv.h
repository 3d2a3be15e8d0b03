// The cache storage of a short convolution: the cache half of the layer kind.
#ifndef INLAY_CACHE_LAYERS_SHORT_CONV_H_
#define INLAY_CACHE_LAYERS_SHORT_CONV_H_

#include <cstddef>

#include "base/rank_share.h"
#include "cache/cache_bytes.h"
#include "cache/input_window.h"
#include "cache/storage.h"
#include "configs/layers/short_conv.h"

namespace inlay {

template <ShortConvShape kShape>
struct MixerStorage<ShortConv<kShape>> {
  using Type = InputWindow;
  static constexpr size_t kTail = kShape.width - 1;

  template <class Policy>
  static Type Make(RankShare) {
    return InputWindow(kShape.channels, kTail, Policy::kRewindDepth);
  }

  template <class Policy>
  static constexpr CacheBytes Bytes() {
    return InputWindow::Bytes(kShape.channels, kTail, Policy::kRewindDepth);
  }

  template <class Policy>
  static constexpr size_t BytesRead(size_t) {
    return kTail * kShape.channels * sizeof(float);
  }
};

}  // namespace inlay

#endif  // INLAY_CACHE_LAYERS_SHORT_CONV_H_
