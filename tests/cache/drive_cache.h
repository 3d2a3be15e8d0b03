// Appends without a model: a cache alone, whose rows nobody writes.
#ifndef INLAY_TESTS_CACHE_DRIVE_CACHE_H_
#define INLAY_TESTS_CACHE_DRIVE_CACHE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "cache/kv_cache.h"

namespace inlay {

// Appends `count` tokens in as few transactions as they need.
inline absl::Status AppendTokens(KVCache& cache, size_t count, int32_t token = 1) {
  while (count > 0) {
    const size_t n = std::min(count, cache.max_append());
    absl::StatusOr<Transaction> transaction = cache.Begin(std::vector<int32_t>(n, token));
    if (!transaction.ok()) return transaction.status();
    transaction->Commit();
    count -= n;
  }
  return absl::OkStatus();
}

}  // namespace inlay

#endif  // INLAY_TESTS_CACHE_DRIVE_CACHE_H_
