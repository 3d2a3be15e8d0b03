// What a conversation costs in memory.
#ifndef INLAY_CACHE_CACHE_BYTES_H_
#define INLAY_CACHE_CACHE_BYTES_H_

#include <cstddef>

#include "ops/attention/kv_shape.h"

namespace inlay {

// Bytes of blocks, for one storage, one layer or all.
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

}  // namespace inlay

#endif  // INLAY_CACHE_CACHE_BYTES_H_
