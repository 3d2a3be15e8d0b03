// Conversations in state stores.
#ifndef INLAY_GEMMA_LIKE_SESSIONS_SESSION_H_
#define INLAY_GEMMA_LIKE_SESSIONS_SESSION_H_

#include <cstddef>
#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "cache/kv_cache.h"
#include "gemma_like/engine.h"
#include "io/store/state_store.h"

namespace inlay {

// Writes the conversation and commits it: the store has all of it or what it had before. The first
// time with an engine the weights are hashed, unless that was done; see Engine::Identity.
absl::Status SaveSession(Engine& engine, const KVCache& cache, StateWriter& writer);

struct LoadOptions {
  // Refuse, with FailedPrecondition, a conversation that would have to be computed again.
  bool exact = false;
  // Called before one is, with why as a clause ("it was computed on AVX2, not AVX3").
  std::function<void(absl::string_view why, size_t tokens)> on_recompute = nullptr;
  CancelCheck cancel = nullptr;  // of computing it
};

// Makes `cache`, which the engine has made, the conversation that was saved; see KVCache::Load.
// What another version of the program, other weights, another instruction set or another type of
// rows has computed is computed again from its tokens. On any error the cache is as it was.
absl::Status LoadSession(Engine& engine, StateReader& reader, KVCache& cache,
                         const LoadOptions& options = {});

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_SESSIONS_SESSION_H_
