// What a conversation costs in memory.
#ifndef INLAY_CACHE_CACHE_BYTES_H_
#define INLAY_CACHE_CACHE_BYTES_H_

#include <cstddef>
#include <limits>

#include "ops/attention/kv_shape.h"

namespace inlay {

// Bytes of pool blocks, for one storage, one layer or the whole model.
struct CacheBytes {
  size_t constant = 0;   // upper bound, independent of the length: rings, states and logs
  size_t per_block = 0;  // in addition, for every started kKvBlockRows tokens
  // The part of `constant` that an append may allocate for every started kKvBlockRows tokens: a
  // ring allocates a block when it is first written, and again when a snapshot shares it.
  size_t ring_block = 0;
  size_t append = 0;    // upper bound of what an open transaction adds
  size_t snapshot = 0;  // upper bound of the copies when a fork and its origin diverge
  size_t trimmed = 0;   // as Kept(), of a fork that cannot be rewound any more: after Trim(0)

  // More than any machine has, and so little that sums of a few plans do not overflow.
  static constexpr size_t kMost = std::numeric_limits<size_t>::max() / 4;

  // The bytes of a conversation of this length, between appends; at most kMost.
  constexpr size_t At(size_t length) const {
    const size_t blocks = length / kKvBlockRows + (length % kKvBlockRows != 0);
    if (per_block > 0 && blocks > (kMost - constant) / per_block) return kMost;
    return constant + blocks * per_block;
  }

  // Upper bound of what a fork costs that is kept while its origin is appended to: the blocks that
  // the two no longer share.
  constexpr size_t Kept() const { return constant + per_block; }

  constexpr CacheBytes& operator+=(const CacheBytes& other) {
    constant += other.constant;
    per_block += other.per_block;
    ring_block += other.ring_block;
    append += other.append;
    snapshot += other.snapshot;
    trimmed += other.trimmed;
    return *this;
  }
};

}  // namespace inlay

#endif  // INLAY_CACHE_CACHE_BYTES_H_
