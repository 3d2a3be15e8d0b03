// A chat that can be continued, rewound and forked, turn by turn.
#ifndef INLAY_GEMMA_LIKE_SESSIONS_CHAT_SESSION_H_
#define INLAY_GEMMA_LIKE_SESSIONS_CHAT_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cache/kv_cache.h"
#include "gemma_like/chat/chat.h"
#include "gemma_like/engine.h"
#include "gemma_like/generation/generate.h"
#include "gemma_like/sessions/session.h"
#include "io/store/state_store.h"
#include "io/tokenizer/tokenizer.h"

namespace inlay {

// The number of last turns before which a snapshot is kept, unless memory allows only fewer. The
// memory that a snapshot does not share can be megabytes in a large model, so not all turns keep
// theirs.
inline constexpr size_t kMostSnapshots = 8;

class ChatSession {
 public:
  struct Turn {
    std::string user;
    // None in chats that versions before saved, which fixed formats do not need.
    std::optional<std::string> answer;
    size_t begin;  // how much of the conversation before it is still there
    size_t end;    // length of the conversation after it
    // A snapshot before the turn, for going back further than a rewind can; null except in the last
    // turns.
    std::shared_ptr<const KVCache> before;
  };

  // The engine and tokenizer must outlive the session; `cache` is empty. `options` are those of
  // every answer; the n-th (from 0) adds n to the seed, so that a regenerated answer differs, and
  // a grammar begins after the thoughts that the prompt has opened. At most `snapshots` (at least
  // 1) are kept, including that of the current answer. ResourceExhausted without memory.
  static absl::StatusOr<ChatSession> Create(Engine& engine, const Tokenizer& tokenizer,
                                            std::shared_ptr<const ChatFormat> format,
                                            std::unique_ptr<KVCache> cache, std::string system,
                                            GenerateOptions options,
                                            size_t snapshots = kMostSnapshots);

  // The model's answer to `user`. On an error, ResourceExhausted without memory among them, the
  // conversation is as it was, here and below.
  absl::StatusOr<GenerateResult> Say(const std::string& user, const TextCallback& on_text,
                                     const CancelCheck& cancel);

  // Removes the last answer and generates another. FailedPrecondition before the first.
  absl::StatusOr<GenerateResult> Regenerate(const TextCallback& on_text, const CancelCheck& cancel);

  // Removes the last `count` turns. OutOfRange when there are fewer.
  absl::Status Rewind(size_t count);

  // Removes all turns; forks stay.
  absl::Status Clear();

  // Stores the present conversation as a fork and returns its number, from 1. ResourceExhausted
  // without memory.
  absl::StatusOr<size_t> Fork();

  // Continues from that fork, which stays. OutOfRange when no fork has this number.
  absl::Status SwitchTo(size_t fork);

  // Writes the conversation and the user's messages, and commits them. Forks are not saved.
  absl::Status Save(StateWriter& writer) const;

  // Replaces this chat by the saved one. On error nothing has changed: InvalidArgument when it is
  // not a saved chat, DataLoss when it is damaged, and the errors of LoadSession.
  absl::Status Load(StateReader& reader, const LoadOptions& options = {});

  // Reads the answer that is being generated, from its first text on.
  AnswerParser StartAnswer() const { return format_->StartAnswer(in_thinking_); }

  const std::vector<Turn>& turns() const { return turns_; }
  const KVCache& cache() const { return *cache_; }
  size_t forks() const { return forks_.size(); }

 private:
  ChatSession(Engine& engine, const Tokenizer& tokenizer, std::shared_ptr<const ChatFormat> format,
              std::shared_ptr<const KVCache> empty, std::unique_ptr<KVCache> cache,
              std::string system, GenerateOptions options, size_t snapshots);

  struct Branch {
    std::shared_ptr<const KVCache> cache;
    std::vector<Turn> turns;
  };

  // Generates the answer to `user` and adds the turn; on an error anything may have changed.
  absl::StatusOr<GenerateResult> Answer(const std::string& user, const Continuation& next,
                                        std::shared_ptr<const KVCache> before,
                                        const TextCallback& on_text, const CancelCheck& cancel);

  // What follows the conversation when the user says `user`.
  absl::StatusOr<Continuation> Next(absl::string_view user) const;

  // Makes the conversation end at `position` by the cheapest means: a rewind, else a snapshot and a
  // prefill of the tokens that it lacks.
  absl::Status GoBack(size_t position);

  Engine& engine_;
  const Tokenizer& tokenizer_;
  std::shared_ptr<const ChatFormat> format_;
  std::shared_ptr<const KVCache> empty_;
  std::unique_ptr<KVCache> cache_;
  std::string system_;
  GenerateOptions options_;
  size_t snapshots_;
  uint64_t answers_ = 0;      // attempted so far
  bool in_thinking_ = false;  // the last answer began amid thoughts
  std::vector<Turn> turns_;
  std::vector<Branch> forks_;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_SESSIONS_CHAT_SESSION_H_
