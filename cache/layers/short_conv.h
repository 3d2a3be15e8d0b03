// The cache storage of a short convolution: the cache half of the layer kind.
#ifndef INLAY_CACHE_LAYERS_SHORT_CONV_H_
#define INLAY_CACHE_LAYERS_SHORT_CONV_H_

#include <cstddef>

#include "base/rank_share.h"
#include "cache/cache_bytes.h"
#include "cache/input_window.h"
#include "cache/storage.h"
#include "configs/layers/short_conv.h"
#include "ops/matmul/quantized_rows.h"

namespace inlay {

template <ShortConvShape kShape>
struct MixerStorage<ShortConv<kShape>> {
  using Type = InputWindow;
  static constexpr size_t kTail = kShape.width - 1;

  // The channels that a rank computes and stores: whole quantization blocks, or all.
  static constexpr PartRange PartOf(RankShare share) {
    constexpr size_t kUnit = kShape.channels % kQuantBlock == 0 ? kQuantBlock : kShape.channels;
    const PartRange units = PartOfRank(kShape.channels / kUnit, share);
    return {units.first * kUnit, units.count * kUnit};
  }

  template <class Policy>
  static Type Make(RankShare share) {
    return InputWindow(PartOf(share).count, kTail, Policy::kRewindDepth);
  }

  template <class Policy>
  static constexpr CacheBytes Bytes(RankShare share) {
    return InputWindow::Bytes(PartOf(share).count, kTail, Policy::kRewindDepth);
  }

  template <class Policy>
  static constexpr size_t BytesRead(size_t, RankShare share) {
    return kTail * PartOf(share).count * sizeof(float);
  }
};

}  // namespace inlay

#endif  // INLAY_CACHE_LAYERS_SHORT_CONV_H_
