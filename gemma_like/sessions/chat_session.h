// A chat that can be continued, taken back and branched, turn by turn.
#ifndef INLAY_GEMMA_LIKE_SESSIONS_CHAT_SESSION_H_
#define INLAY_GEMMA_LIKE_SESSIONS_CHAT_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cache/kv_cache.h"
#include "gemma_like/engine.h"
#include "gemma_like/generation/generate.h"
#include "gemma_like/sessions/chat.h"
#include "gemma_like/sessions/session.h"
#include "io/store/state_store.h"
#include "io/tokenizer/tokenizer.h"

namespace inlay {

// The turns before which a snapshot is kept, unless there is too little memory for so many. What
// one has for itself can be megabytes in a large model, so not all turns keep theirs.
inline constexpr size_t kMostSnapshots = 8;

class ChatSession {
 public:
  // One thing said and what was answered.
  struct Turn {
    std::string user;
    size_t begin;  // length of the conversation before it
    // The conversation before it, for taking back what a rewind cannot; of the last turns only.
    std::shared_ptr<const KVCache> before;
  };

  // The engine and tokenizer must outlive the session; `cache` is empty. `options` are those of
  // every answer; the n-th (from 0) adds n to the seed, so that another try is another answer. At
  // most `snapshots` (at least 1) are kept, that of the answer at hand included.
  // ResourceExhausted without memory.
  static absl::StatusOr<ChatSession> Create(Engine& engine, const Tokenizer& tokenizer,
                                            ChatFormat format, std::unique_ptr<KVCache> cache,
                                            std::string system, GenerateOptions options,
                                            size_t snapshots = kMostSnapshots);

  // The model's answer to `user`. On an error, ResourceExhausted without memory among them, the
  // conversation is as it was, here and below.
  absl::StatusOr<GenerateResult> Say(const std::string& user, const TextCallback& on_text,
                                     const CancelCheck& cancel);

  // Takes the last answer back and gives another. FailedPrecondition before the first.
  absl::StatusOr<GenerateResult> Regenerate(const TextCallback& on_text, const CancelCheck& cancel);

  // Takes back the last `count` turns. OutOfRange when there are not so many.
  absl::Status Rewind(size_t count);

  // Forgets everything that was said; forks stay.
  absl::Status Clear();

  // Keeps the conversation as it is now; returns the fork's number, from 1. ResourceExhausted
  // without memory.
  absl::StatusOr<size_t> Fork();

  // Goes on from that fork, which stays. OutOfRange when there is none of this number.
  absl::Status SwitchTo(size_t fork);

  // Writes the conversation and what was said, and commits it. Forks are not saved.
  absl::Status Save(StateWriter& writer) const;

  // Becomes the chat that was saved. On error nothing has changed: InvalidArgument or DataLoss when
  // it is something else or damaged, and the errors of LoadSession.
  absl::Status Load(StateReader& reader, const LoadOptions& options = {});

  const std::vector<Turn>& turns() const { return turns_; }
  const KVCache& cache() const { return *cache_; }
  size_t forks() const { return forks_.size(); }

 private:
  ChatSession(Engine& engine, const Tokenizer& tokenizer, ChatFormat format,
              std::shared_ptr<const KVCache> empty, std::unique_ptr<KVCache> cache,
              std::string system, GenerateOptions options, size_t snapshots);

  struct Branch {
    std::shared_ptr<const KVCache> cache;
    std::vector<Turn> turns;
  };

  // Makes the conversation end before `position`, the begin of turn `index`, by the cheapest way:
  // a rewind, else a snapshot and the evaluation of what is missing.
  absl::Status GoBack(size_t index);

  Engine& engine_;
  const Tokenizer& tokenizer_;
  ChatFormat format_;
  std::shared_ptr<const KVCache> empty_;
  std::unique_ptr<KVCache> cache_;
  std::string system_;
  GenerateOptions options_;
  size_t snapshots_;
  uint64_t answers_ = 0;  // tried so far
  std::vector<Turn> turns_;
  std::vector<Branch> forks_;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_SESSIONS_CHAT_SESSION_H_
