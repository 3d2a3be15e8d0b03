// How the keys and values of an attention layer lie in memory.
#ifndef INLAY_OPS_ATTENTION_KV_SHAPE_H_
#define INLAY_OPS_ATTENTION_KV_SHAPE_H_

#include <cstddef>

#include "ops/attention/kv_type.h"

namespace inlay {

// The largest head dim that attention's kernels have room for on their stack.
inline constexpr size_t kMaxHeadDim = 1024;

// A KV block has this many consecutive positions, aligned to multiples of it. At head dim 128 in 16
// bits one head has 64 * 128 * 2 bytes = 16 KiB of keys in a KV block, so they and their scores
// stay in the L1 cache.
inline constexpr size_t kKvBlockRows = 64;

// The static shape of an attention layer's stored rows. A KV block holds kKvBlockRows positions;
// for each kv head the keys [head_dim][kKvBlockRows], then the values [kKvBlockRows][head_dim],
// elements of `type`, each followed by scales [kKvBlockRows] if the type has them. So the vectors
// of both products of attention are contiguous in memory: scores of neighbouring keys, and sums of
// neighbouring elements of values.
struct KvShape {
  size_t kv_heads = 0;
  size_t head_dim = 0;
  KvType type = KvType::kF32;

  // Bytes of the keys, or of the values, of one head in a KV block.
  constexpr size_t KeysOrValuesBytes() const {
    return kKvBlockRows * (head_dim * KvTypeBytes(type) + KvScaleBytes(type));
  }
  constexpr size_t BlockBytes() const { return kv_heads * 2 * KeysOrValuesBytes(); }
};

}  // namespace inlay

#endif  // INLAY_OPS_ATTENTION_KV_SHAPE_H_
