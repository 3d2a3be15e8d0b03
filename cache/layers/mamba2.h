// The cache storage of Mamba2: the cache half of the layer kind.
#ifndef INLAY_CACHE_LAYERS_MAMBA2_H_
#define INLAY_CACHE_LAYERS_MAMBA2_H_

#include <cstddef>
#include <numeric>

#include "base/rank_share.h"
#include "cache/cache_bytes.h"
#include "cache/chunk_log.h"
#include "cache/input_window.h"
#include "cache/storage.h"
#include "configs/layers/mamba2.h"
#include "ops/matmul/packed_matrix.h"
#include "ops/matmul/quantized_rows.h"
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

  // The heads that stay together where ranks share them: those that read the same B and C or, where
  // all do, as many as have whole quantization blocks. All of them if the columns of these, or
  // those of B and C, are not whole tiles of a matrix.
  static constexpr size_t UnitHeads() {
    const size_t heads = kSsd.groups == 1 ? kQuantBlock / std::gcd(kQuantBlock, kSsd.head_dim)
                                          : kSsd.heads / kSsd.groups;
    const bool fits = kSsd.heads % heads == 0 && heads * kSsd.head_dim % kQuantBlock == 0 &&
                      kSsd.state_dim % kTileRows == 0;
    return fits ? heads : kSsd.heads;
  }

  // What a rank computes and stores: some heads, and the groups of B and C that they read.
  struct Part {
    PartRange heads;
    PartRange groups;

    constexpr SsdShape Shape() const {
      return {.heads = heads.count,
              .head_dim = kSsd.head_dim,
              .groups = groups.count,
              .state_dim = kSsd.state_dim};
    }
    constexpr bool IsWhole() const { return heads.count == kSsd.heads; }
  };
  static constexpr Part PartOf(RankShare share) {
    const PartRange units = PartOfRank(kSsd.heads / UnitHeads(), share);
    const PartRange heads = {units.first * UnitHeads(), units.count * UnitHeads()};
    if (kSsd.groups == 1 || heads.count == kSsd.heads) return {heads, {0, kSsd.groups}};
    return {heads, units};
  }

  template <class Policy>
  static Type Make(RankShare share) {
    const SsdShape shape = PartOf(share).Shape();
    return Type(InputWindow(shape.XbcDim(), kTail, Policy::kRewindDepth),
                ChunkLog<SsdLog>(shape, Policy::kStateType));
  }

  template <class Policy>
  static constexpr CacheBytes Bytes(RankShare share) {
    const SsdShape shape = PartOf(share).Shape();
    CacheBytes bytes = InputWindow::Bytes(shape.XbcDim(), kTail, Policy::kRewindDepth);
    bytes += ChunkLog<SsdLog>::Bytes(shape, Policy::kStateType);
    return bytes;
  }

  template <class Policy>
  static constexpr size_t BytesRead(size_t, RankShare share) {
    const SsdShape shape = PartOf(share).Shape();
    // The state, half a chunk of x and B on average, and the convolution's inputs.
    return shape.StateBytes(Policy::kStateType) +
           (kStateChunk / 2 * (shape.Inner() + shape.BcDim()) + kTail * shape.XbcDim()) *
               sizeof(float);
  }
};

}  // namespace inlay

#endif  // INLAY_CACHE_LAYERS_MAMBA2_H_
