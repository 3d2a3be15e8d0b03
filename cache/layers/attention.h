// The cache storage of attention: the cache half of the layer kind.
#ifndef INLAY_CACHE_LAYERS_ATTENTION_H_
#define INLAY_CACHE_LAYERS_ATTENTION_H_

#include <algorithm>
#include <cstddef>

#include "base/rank_share.h"
#include "cache/cache_bytes.h"
#include "cache/kv_blocks.h"
#include "cache/storage.h"
#include "configs/layers/attention.h"
#include "ops/attention/kv_shape.h"
#include "ops/attention/kv_type.h"
#include "ops/matmul/packed_matrix.h"
#include "ops/matmul/quantized_rows.h"

namespace inlay {

// Whether queries of the same kv head are shared out among ranks, each of which stores that head:
// where there are fewer kv heads than ranks, and no rank's queries read two of them.
constexpr bool SharesQueries(const AttentionShape& shape, size_t ranks) {
  const auto heads = static_cast<size_t>(shape.heads);
  const auto kv_heads = static_cast<size_t>(shape.kv_heads);
  return kv_heads == 1 || (kv_heads < ranks && ranks % kv_heads == 0 && heads % ranks == 0);
}

// How ranks share the heads of attention: in units of a kv head with its queries, or of single
// query heads if SharesQueries. 1: each rank computes all heads. Their columns must be whole tiles
// of rows and whole quantization blocks.
constexpr size_t HeadUnits(const AttentionShape& shape, size_t ranks) {
  const auto units =
      static_cast<size_t>(SharesQueries(shape, ranks) ? shape.heads : shape.kv_heads);
  const size_t columns = static_cast<size_t>(shape.heads * shape.head_dim) / units;
  return ranks > 1 && units >= ranks && columns % kQuantBlock == 0 &&
                 shape.head_dim % kTileRows == 0
             ? units
             : 1;
}

// How many ranks store the same kv heads, if ranks share the heads.
constexpr size_t KvHolders(const AttentionShape& shape, size_t ranks) {
  if (HeadUnits(shape, ranks) == 1 || !SharesQueries(shape, ranks)) return 1;
  return ranks / static_cast<size_t>(shape.kv_heads);
}

// The kv heads that a rank stores.
constexpr size_t OwnKvHeads(const AttentionShape& shape, RankShare share) {
  const auto kv_heads = static_cast<size_t>(shape.kv_heads);
  if (HeadUnits(shape, share.count) == 1) return kv_heads;
  return PartOfRank(kv_heads, ShareOfGroup(share, KvHolders(shape, share.count))).count;
}

template <AttentionShape kShape, Rope kRope, int kWindow>
struct MixerStorage<AttentionMixer<kShape, kRope, kWindow>> {
  using Type = KvBlocks;

  // Tokens that attend to later ones are appended in one piece, for which a ring would be too
  // short.
  static constexpr int kStoredWindow = kShape.bidirectional ? 0 : kWindow;
  template <class Policy>
  static constexpr KvShape Rows(RankShare share) {
    return {.kv_heads = OwnKvHeads(kShape, share),
            .head_dim = kShape.head_dim,
            .type = Policy::kKvType};
  }
  template <class Policy>
  static constexpr size_t kRingBlocks = kStoredWindow == 0
                                            ? 0
                                            : KvBlocks::RingBlocks(kStoredWindow,
                                                                   Policy::kMaxAppend,
                                                                   Policy::kRewindDepth);

  template <class Policy>
  static Type Make(RankShare share) {
    return KvBlocks(Rows<Policy>(share), kStoredWindow, kRingBlocks<Policy>);
  }

  template <class Policy>
  static constexpr CacheBytes Bytes(RankShare share) {
    const size_t block = Rows<Policy>(share).BlockBytes();
    if constexpr (kStoredWindow == 0) {
      return {.per_block = block, .snapshot = block, .trimmed = block};
    } else {
      return {.constant = kRingBlocks<Policy> * block,
              .ring_block = block,
              .snapshot = block,
              .trimmed = KvBlocks::WindowBlocks(kStoredWindow) * block};
    }
  }

  template <class Policy>
  static constexpr size_t BytesRead(size_t length, RankShare share) {
    const size_t rows = kWindow == 0 ? length + 1 : std::min<size_t>(length + 1, kWindow);
    return rows * (Rows<Policy>(share).BlockBytes() / kKvBlockRows);
  }
};

}  // namespace inlay

#endif  // INLAY_CACHE_LAYERS_ATTENTION_H_
