// Conversations with a memory limit, which is checked before anything is allocated.
#ifndef INLAY_GEMMA_LIKE_CACHE_LIMIT_H_
#define INLAY_GEMMA_LIKE_CACHE_LIMIT_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "cache/cache_options.h"
#include "cache/kv_cache.h"
#include "gemma_like/engine.h"
#include "ops/attention/kv_type.h"

namespace inlay {

// The most bytes that a conversation of max_length tokens needs by the plan, with an open append
// and `snapshots` snapshots of it, all but the last of which are trimmed.
size_t MostCacheBytes(const Engine& engine, KvType type, size_t max_length, size_t snapshots);

// An empty conversation whose pool has the limit; `options.pool` is not used. ResourceExhausted
// when MostCacheBytes is above the limit, or without memory.
absl::StatusOr<std::unique_ptr<KVCache>> CreateCacheWithin(const Engine& engine, size_t limit_bytes,
                                                           const CacheOptions& options, KvType type,
                                                           size_t snapshots = 0);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_CACHE_LIMIT_H_
