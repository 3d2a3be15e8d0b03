// Saves conversations to state stores and loads them.
#ifndef INLAY_GEMMA_LIKE_SESSIONS_SESSION_H_
#define INLAY_GEMMA_LIKE_SESSIONS_SESSION_H_

#include <cstddef>
#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/byte_stream.h"
#include "base/progress.h"
#include "cache/kv_cache.h"
#include "gemma_like/engine.h"
#include "io/store/state_store.h"

namespace inlay {

// What is saved of a conversation: kTokens takes a few bytes a token, and loading computes the rest
// again.
enum class SavedPart { kAll, kTokens };

// Writes the conversation and commits it: the store then holds all of it or what it held before.
// The first call with an engine hashes the weights, unless that is already done; see
// Engine::Identity.
absl::Status SaveSession(Engine& engine, const KVCache& cache, StateWriter& writer,
                         SavedPart part = SavedPart::kAll);

struct LoadOptions {
  // Refuse, with FailedPrecondition, a conversation that would have to be computed again.
  bool exact = false;
  // Called before a conversation is computed again, with the reason as a clause ("it was computed
  // on AVX2, not AVX3").
  std::function<void(absl::string_view why, size_t tokens)> on_recompute = nullptr;
  CancelCheck cancel = nullptr;  // stops that computation
  Progress progress = nullptr;   // of it, in tokens
};

// Calls `on_recompute`, or with `exact` returns the error: for who loads a conversation of `tokens`
// tokens that has to be computed again, for the reason `why`.
absl::Status AllowRecompute(const LoadOptions& options, absl::string_view why, size_t tokens);

// Replaces `cache`, which the engine has created, by the saved conversation; see KVCache::Load. If
// another version of the program, other weights, another instruction set or another row type has
// computed it, it is computed again from its tokens. On any error the cache is as it was.
absl::Status LoadSession(Engine& engine, ByteSource& reader, KVCache& cache,
                         const LoadOptions& options = {});

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_SESSIONS_SESSION_H_
