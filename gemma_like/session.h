// Conversations in state stores.
#ifndef INLAY_GEMMA_LIKE_SESSION_H_
#define INLAY_GEMMA_LIKE_SESSION_H_

#include "absl/status/status.h"
#include "cache/kv_cache.h"
#include "gemma_like/engine.h"
#include "io/state_store.h"

namespace inlay {

// Writes the conversation and commits it: the store has all of it or what it had before.
absl::Status SaveSession(const Engine& engine, const KVCache& cache, StateWriter& writer);

// Makes `cache` the conversation that was saved; see KVCache::Load. Only tokens that come after it
// are then computed.
absl::Status LoadSession(const Engine& engine, StateReader& reader, KVCache& cache);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_SESSION_H_
