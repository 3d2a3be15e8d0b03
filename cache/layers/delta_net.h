// The cache storage of a gated delta net: the cache half of the layer kind.
#ifndef INLAY_CACHE_LAYERS_DELTA_NET_H_
#define INLAY_CACHE_LAYERS_DELTA_NET_H_

#include <cstddef>
#include <numeric>

#include "base/rank_share.h"
#include "cache/cache_bytes.h"
#include "cache/chunk_log.h"
#include "cache/input_window.h"
#include "cache/storage.h"
#include "configs/layers/delta_net.h"
#include "ops/delta_rule.h"
#include "ops/matmul/quantized_rows.h"

namespace inlay {

// The last inputs of the convolution; the states and the log of keys, corrections and decays.
template <DeltaNetShape kShape>
struct MixerStorage<DeltaNet<kShape>> {
  using Type = StorageTuple<InputWindow, ChunkLog<DeltaLog>>;

  static constexpr DeltaShape kDelta{.key_heads = kShape.key_heads,
                                     .value_heads = kShape.value_heads,
                                     .head_dim = kShape.head_dim};
  static constexpr size_t kTail = kShape.conv_width - 1;

  // The key heads, each with the value heads that read it, that stay together where ranks share
  // them: as many as have whole quantization blocks.
  static constexpr size_t UnitKeyHeads() {
    const size_t heads = kQuantBlock / std::gcd(kQuantBlock, kDelta.head_dim);
    return kDelta.key_heads % heads == 0 ? heads : kDelta.key_heads;
  }
  // Value heads are shared in each of so many spans, which read all key heads one after the other.
  static constexpr size_t kValueSpans = kDelta.value_heads / kDelta.key_heads;

  // What a rank computes and stores: some key heads and the value heads that read them.
  struct Part {
    PartRange key_heads;

    constexpr DeltaShape Shape() const {
      return {.key_heads = key_heads.count,
              .value_heads = kValueSpans * key_heads.count,
              .head_dim = kDelta.head_dim};
    }
    constexpr bool IsWhole() const { return key_heads.count == kDelta.key_heads; }
  };
  static constexpr Part PartOf(RankShare share) {
    const PartRange units = PartOfRank(kDelta.key_heads / UnitKeyHeads(), share);
    return {{units.first * UnitKeyHeads(), units.count * UnitKeyHeads()}};
  }

  template <class Policy>
  static Type Make(RankShare share) {
    const DeltaShape shape = PartOf(share).Shape();
    return Type(InputWindow(shape.QkvDim(), kTail, Policy::kRewindDepth),
                ChunkLog<DeltaLog>(shape, Policy::kStateType));
  }

  template <class Policy>
  static constexpr CacheBytes Bytes(RankShare share) {
    const DeltaShape shape = PartOf(share).Shape();
    CacheBytes bytes = InputWindow::Bytes(shape.QkvDim(), kTail, Policy::kRewindDepth);
    bytes += ChunkLog<DeltaLog>::Bytes(shape, Policy::kStateType);
    return bytes;
  }

  template <class Policy>
  static constexpr size_t BytesRead(size_t, RankShare share) {
    const DeltaShape shape = PartOf(share).Shape();
    // The state, half a chunk of keys and corrections on average, and the convolution's inputs.
    return shape.StateBytes(Policy::kStateType) +
           (kStateChunk / 2 * (shape.KeyDim() + shape.Inner()) + kTail * shape.QkvDim()) *
               sizeof(float);
  }
};

}  // namespace inlay

#endif  // INLAY_CACHE_LAYERS_DELTA_NET_H_
