// What a conversation costs in memory, computed at compile time from the layers' types.
#ifndef INLAY_CACHE_CACHE_PLAN_H_
#define INLAY_CACHE_CACHE_PLAN_H_

#include <cstddef>

#include "cache/hybrid_cache.h"
#include "cache/kv_blocks.h"
#include "cache/ssd_slots.h"
#include "configs/config.h"
#include "configs/pattern.h"
#include "ops/attention.h"
#include "ops/ssd.h"

namespace inlay {

// Bytes of blocks, for one layer or for all.
struct CacheBytes {
  size_t constant = 0;   // at most, whatever the length: rings, states and logs
  size_t per_block = 0;  // more for every started kKvBlockRows tokens
  size_t append = 0;     // at most, more while a transaction is open
  size_t snapshot = 0;   // at most, copied when a fork and its origin first diverge

  // Of a conversation of this length, between appends.
  constexpr size_t At(size_t length) const {
    return constant + (length + kKvBlockRows - 1) / kKvBlockRows * per_block;
  }

  // At most, of a fork that is kept while its origin goes on: what the two then no longer share.
  constexpr size_t Kept() const { return constant + per_block; }

  constexpr CacheBytes& operator+=(const CacheBytes& other) {
    constant += other.constant;
    per_block += other.per_block;
    append += other.append;
    snapshot += other.snapshot;
    return *this;
  }
};

template <class Layer, class Policy>
constexpr CacheBytes LayerCacheBytes() {
  if constexpr (kIsAttention<Layer>) {
    constexpr size_t kBlock = KvShapeOf<Layer, Policy>().BlockBytes();
    if constexpr (Layer::kWindow == 0) {
      return {.per_block = kBlock, .snapshot = kBlock};
    } else {
      return {.constant =
                  KvBlocks::RingBlocks(Layer::kWindow, Policy::kMaxAppend, Policy::kRewindDepth) *
                  kBlock,
              .snapshot = kBlock};
    }
  } else {
    constexpr SsdShape kShape = SsdShapeOf<Layer>();
    constexpr size_t kBoundary = SsdSlots::BoundaryElements(kShape) * sizeof(float);
    constexpr size_t kLog = kShape.LogElements() * sizeof(float);
    // Two chunks are kept; an append writes up to two more beside them.
    return {.constant = 2 * (kBoundary + kLog), .append = 2 * (kBoundary + kLog), .snapshot = kLog};
  }
}

template <ModelConfig Config, class Policy = F32Storage>
constexpr CacheBytes ConfigCacheBytes() {
  CacheBytes total;
  ForEachLayer<Config>([&]<class Layer>(int) { total += LayerCacheBytes<Layer, Policy>(); });
  return total;
}

}  // namespace inlay

#endif  // INLAY_CACHE_CACHE_PLAN_H_
