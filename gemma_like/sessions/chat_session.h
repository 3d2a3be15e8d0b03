// A chat that can be continued, rewound and forked, turn by turn.
#ifndef INLAY_GEMMA_LIKE_SESSIONS_CHAT_SESSION_H_
#define INLAY_GEMMA_LIKE_SESSIONS_CHAT_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/progress.h"
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
    // nullopt: saved by format version 1, which did not store answers.
    std::optional<std::string> answer;
    size_t begin;  // how much of the conversation before it is still there
    size_t end;    // length of the conversation after it
    // A snapshot before the turn, for going back further than a rewind can; null except in the last
    // turns.
    std::shared_ptr<const KVCache> before;
    size_t answer_begin = 0;  // position of the answer; 0: it was not generated here
    size_t encoded = 0;       // of its last tokens: those that were not drawn (see DropStopText)
  };

  // The engine and tokenizer must outlive the session; `cache` is empty. `options` are those of
  // every answer; the n-th (from 0) adds n to the seed, so that a regenerated answer differs, and
  // a grammar begins after the thoughts that the prompt has opened. At most `snapshots` (at least
  // 1) are kept, including that of the current answer. InvalidArgument for 0 of them,
  // ResourceExhausted without memory.
  static absl::StatusOr<ChatSession> Create(Engine& engine, const Tokenizer& tokenizer,
                                            std::shared_ptr<const ChatFormat> format,
                                            std::unique_ptr<KVCache> cache, std::string system,
                                            GenerateOptions options,
                                            size_t snapshots = kMostSnapshots);

  // The model's answer to `user`. On an error, ResourceExhausted without memory among them, the
  // conversation is as it was, here and below.
  absl::StatusOr<GenerateResult> Say(const std::string& user, const TextCallback& on_text,
                                     const CancelCheck& cancel);

  // Before an answer for which the context has too little room, drops the oldest turns: those that
  // are left are computed anew, as a conversation of their own with the same system prompt. Then
  // calls `on_drop` with the number of turns dropped and of tokens to compute. Too little is less
  // than a quarter of the context after the message, or than the answer's most tokens if that is
  // less; afterwards the message and the turns before it take at most half of it, if they can. By
  // default an answer ends where the context does.
  using DropCallback = std::function<void(size_t dropped, size_t tokens)>;
  void DropOldTurnsWhenFull(DropCallback on_drop) { on_drop_ = std::move(on_drop); }

  // Removes the last answer and generates another. FailedPrecondition before the first.
  absl::StatusOr<GenerateResult> Regenerate(const TextCallback& on_text, const CancelCheck& cancel);

  // Removes the last `count` turns. OutOfRange when there are fewer. Where no rewind of the
  // conversation leads that far, its tokens since a snapshot are computed again: `progress` counts
  // them, and when `cancel` returns true that ends with Cancelled.
  absl::Status Rewind(size_t count, const CancelCheck& cancel = nullptr,
                      const Progress& progress = nullptr);

  // Removes all turns; forks stay.
  absl::Status Clear();

  // Stores the present conversation as a fork and returns its number, from 1. ResourceExhausted
  // without memory.
  absl::StatusOr<size_t> Fork();

  // Continues from that fork, which stays, with its system prompt. Returns the number of a new fork
  // that keeps the conversation that was left; none where that has no turns or is what a fork has
  // already. OutOfRange when no fork has this number.
  absl::StatusOr<std::optional<size_t>> SwitchTo(size_t fork);

  // Forgets that fork; the others keep their numbers. OutOfRange when no fork has this number.
  absl::Status DropFork(size_t fork);

  // Replaces the system prompt, "" for none. Before the next answer the conversation is computed
  // anew with it.
  absl::Status SetSystem(std::string system);
  const std::string& system() const { return system_; }

  // Of the answers to come; the seed is that of the next one.
  void SetTemperature(float temperature) { options_.sampling.temperature = temperature; }
  void SetSeed(uint64_t seed) { options_.sampling.seed = seed - answers_; }
  uint64_t seed() const { return options_.sampling.seed + answers_; }

  // The tokens of the last answer with their probabilities, and the `top` likeliest in the place of
  // each. Runs the model over them again, which gives the same bits. FailedPrecondition unless the
  // conversation ends with an answer that was generated here.
  absl::StatusOr<std::vector<ChosenToken>> LastChances(size_t top, const CancelCheck& cancel);

  // Writes the system prompt, the messages, the answers and the conversation, and commits them.
  // Forks are not saved. InvalidArgument for more than 64 MiB of texts, which Load would refuse.
  absl::Status Save(StateWriter& writer, SavedPart part = SavedPart::kAll) const;

  // Replaces this chat by the saved one, with its system prompt if one was saved. One that another
  // format has written is computed anew from its texts before the next answer, as after SetSystem.
  // On error nothing has changed: InvalidArgument when it is not a saved chat, DataLoss when it is
  // damaged, and the errors of LoadSession.
  absl::Status Load(ByteSource& reader, const LoadOptions& options = {});

  // The turns of a saved chat, without its conversation. InvalidArgument when it is not a saved
  // chat, DataLoss when it is damaged.
  static absl::StatusOr<std::vector<Turn>> ReadTurns(ByteSource& reader);

  // Reads the answer that is being generated, from its first text on.
  AnswerParser StartAnswer() const { return format_->StartAnswer(in_thinking_); }

  // The turn's answer without the thoughts before it; "" where it is not known.
  absl::string_view AnswerWithoutThoughts(const Turn& turn) const;

  const std::vector<Turn>& turns() const { return turns_; }
  const KVCache& cache() const { return *cache_; }
  struct ForkSize {
    size_t number, turns, tokens;
  };
  std::vector<ForkSize> forks() const;

 private:
  ChatSession(Engine& engine, const Tokenizer& tokenizer, std::shared_ptr<const ChatFormat> format,
              std::shared_ptr<const KVCache> empty, std::unique_ptr<KVCache> cache,
              std::string system, GenerateOptions options, size_t snapshots);

  struct Branch {
    std::shared_ptr<const KVCache> cache;
    std::vector<Turn> turns;
    std::string system;
  };

  // Generates the answer to `user` and adds the turn; on an error anything may have changed.
  absl::StatusOr<GenerateResult> Answer(const std::string& user, const Continuation& next,
                                        std::shared_ptr<const KVCache> before,
                                        const TextCallback& on_text, const CancelCheck& cancel);

  // What follows the conversation when the user says `user`, all turns but the first `dropped`
  // being before it. With `anew` nothing is kept.
  absl::StatusOr<Continuation> Next(absl::string_view user, bool anew, size_t dropped = 0) const;

  // The same after dropping turns, if DropOldTurnsWhenFull asks for that.
  absl::StatusOr<Continuation> NextWithRoom(absl::string_view user);

  absl::Status NoFork(size_t fork) const;
  // Whether a fork has the present conversation.
  bool IsForked() const;

  // Makes the conversation end at `position`.
  absl::Status GoBack(size_t position, const CancelCheck& cancel,
                      const Progress& progress = nullptr);
  // Takes from the conversation what an answer, which begins at token `begin` and has a text of
  // `answer_size` bytes, has behind that text: the stop text that ended it, which nobody was shown.
  absl::Status DropStopText(size_t begin, size_t answer_size);

  // The beginning of the conversation up to `position`, where no rewind leads, by the cheapest
  // means: from a snapshot and a prefill of the tokens that it lacks.
  absl::StatusOr<std::unique_ptr<KVCache>> Beginning(size_t position, const CancelCheck& cancel,
                                                     const Progress& progress = nullptr);

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
  std::map<size_t, Branch> forks_;  // by number
  size_t last_fork_ = 0;            // number
  DropCallback on_drop_;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_SESSIONS_CHAT_SESSION_H_
