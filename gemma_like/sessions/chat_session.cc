#include "gemma_like/sessions/chat_session.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/plural.h"
#include "base/status_macros.h"
#include "gemma_like/grammar/answer_grammars.h"
#include "ops/views.h"

namespace inlay {

absl::StatusOr<ChatSession> ChatSession::Create(Engine& engine, const Tokenizer& tokenizer,
                                                std::shared_ptr<const ChatFormat> format,
                                                std::unique_ptr<KVCache> cache, std::string system,
                                                GenerateOptions options, size_t snapshots) {
  return OrOutOfMemory("this chat", [&]() -> absl::StatusOr<ChatSession> {
    INLAY_ASSIGN_OR_RETURN(std::shared_ptr<const KVCache> empty, cache->Fork());
    return ChatSession(engine, tokenizer, std::move(format), std::move(empty), std::move(cache),
                       std::move(system), std::move(options), snapshots);
  });
}

ChatSession::ChatSession(Engine& engine, const Tokenizer& tokenizer,
                         std::shared_ptr<const ChatFormat> format,
                         std::shared_ptr<const KVCache> empty, std::unique_ptr<KVCache> cache,
                         std::string system, GenerateOptions options, size_t snapshots)
    : engine_(engine),
      tokenizer_(tokenizer),
      format_(std::move(format)),
      empty_(std::move(empty)),
      cache_(std::move(cache)),
      system_(std::move(system)),
      options_(std::move(options)),
      snapshots_(snapshots) {}

absl::StatusOr<GenerateResult> ChatSession::Say(const std::string& user,
                                                const TextCallback& on_text,
                                                const CancelCheck& cancel) {
  return OrOutOfMemory("this chat", [&]() -> absl::StatusOr<GenerateResult> {
    INLAY_ASSIGN_OR_RETURN(const Continuation next, Next(user));
    if (turns_.size() >= snapshots_) turns_[turns_.size() - snapshots_].before = nullptr;
    INLAY_ASSIGN_OR_RETURN(const std::shared_ptr<KVCache> before, cache_->Fork());
    std::vector<Turn> turns_before = turns_;  // restored if the answer fails
    auto result =
        OrOutOfMemory("this chat", [&] { return Answer(user, next, before, on_text, cancel); });
    if (!result.ok()) {
      turns_ = std::move(turns_before);
      INLAY_RETURN_IF_ERROR(cache_->Restore(std::move(*before)));
    }
    return result;
  });
}

absl::StatusOr<GenerateResult> ChatSession::Answer(const std::string& user,
                                                   const Continuation& next,
                                                   std::shared_ptr<const KVCache> before,
                                                   const TextCallback& on_text,
                                                   const CancelCheck& cancel) {
  if (next.keep < cache_->length()) {
    INLAY_RETURN_IF_ERROR(GoBack(next.keep));
    for (Turn& turn : turns_) {
      if (turn.begin <= next.keep) continue;
      turn.begin = next.keep;
      turn.before = nullptr;
    }
  }
  turns_.push_back({.user = user,
                    .answer = std::nullopt,
                    .begin = next.keep,
                    .end = 0,
                    .before = std::move(before)});
  GenerateOptions options = options_;
  options.sampling.seed += answers_++;
  in_thinking_ = next.in_thinking;
  if (options.grammar != nullptr && in_thinking_)
    options.grammar = options.grammar->After(format_->answer_format().think_end);
  INLAY_ASSIGN_OR_RETURN(GenerateResult result, Generate(engine_, tokenizer_, *cache_, next.tokens,
                                                         options, on_text, cancel));
  turns_.back().answer = result.text;
  turns_.back().end = cache_->length();
  return result;
}

absl::StatusOr<Continuation> ChatSession::Next(absl::string_view user) const {
  std::vector<Exchange> before;
  for (const Turn& turn : turns_) before.push_back({turn.user, turn.answer});
  const bool ends_with_answer = !turns_.empty() && turns_.back().end == cache_->length();
  return format_->Next({.system = system_, .before = before, .user = user}, cache_->tokens(),
                       ends_with_answer);
}

absl::StatusOr<GenerateResult> ChatSession::Regenerate(const TextCallback& on_text,
                                                       const CancelCheck& cancel) {
  return OrOutOfMemory("this chat", [&]() -> absl::StatusOr<GenerateResult> {
    if (turns_.empty()) return absl::FailedPreconditionError("there is no answer to regenerate");
    const std::string user = turns_.back().user;
    // Restored if the answer fails.
    INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<KVCache> before, cache_->Fork());
    std::vector<Turn> turns = turns_;
    INLAY_RETURN_IF_ERROR(Rewind(1));
    auto result = Say(user, on_text, cancel);
    if (!result.ok()) {
      INLAY_RETURN_IF_ERROR(cache_->Restore(std::move(*before)));
      turns_ = std::move(turns);
    }
    return result;
  });
}

absl::Status ChatSession::Rewind(size_t count) {
  return OrOutOfMemory("this chat", [&]() -> absl::Status {
    if (count > turns_.size()) {
      return absl::OutOfRangeError(
          absl::StrCat("cannot rewind ", count, " of ", Plural(turns_.size(), "turn")));
    }
    if (count == 0) return absl::OkStatus();
    const size_t index = turns_.size() - count;
    INLAY_RETURN_IF_ERROR(GoBack(turns_[index].begin));
    turns_.resize(index);
    return absl::OkStatus();
  });
}

absl::Status ChatSession::GoBack(size_t position) {
  if (position >= cache_->RewindFloor()) return cache_->Rewind(position);
  const KVCache* snapshot = empty_.get();
  for (const Turn& turn : turns_) {
    // Not where this turn changed what was before it.
    const bool is_beginning = turn.before != nullptr && turn.before->length() == turn.begin;
    if (is_beginning && turn.begin <= position) snapshot = turn.before.get();
  }
  INLAY_ASSIGN_OR_RETURN(std::unique_ptr<KVCache> cache, snapshot->Fork());
  const auto missing = cache_->tokens().subspan(cache->length(), position - cache->length());
  if (!missing.empty()) {
    const FloatRows no_logits(nullptr, 0, engine_.info().vocab_size);
    INLAY_RETURN_IF_ERROR(Prefill(engine_, *cache, missing, no_logits));
  }
  cache_ = std::move(cache);
  return absl::OkStatus();
}

absl::Status ChatSession::Clear() {
  INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<KVCache> empty, empty_->Fork());
  INLAY_RETURN_IF_ERROR(cache_->Restore(std::move(*empty)));
  turns_.clear();
  return absl::OkStatus();
}

absl::StatusOr<size_t> ChatSession::Fork() {
  return OrOutOfMemory("a fork of this chat", [&]() -> absl::StatusOr<size_t> {
    INLAY_ASSIGN_OR_RETURN(std::unique_ptr<KVCache> fork, cache_->Fork());
    forks_.push_back({.cache = std::move(fork), .turns = turns_});
    return forks_.size();
  });
}

absl::Status ChatSession::SwitchTo(size_t fork) {
  return OrOutOfMemory("this chat", [&]() -> absl::Status {
    if (fork == 0 || fork > forks_.size()) {
      return absl::OutOfRangeError(
          absl::StrCat("there is no fork ", fork, " among ", Plural(forks_.size(), "fork")));
    }
    std::vector<Turn> turns = forks_[fork - 1].turns;
    INLAY_ASSIGN_OR_RETURN(cache_, forks_[fork - 1].cache->Fork());
    turns_ = std::move(turns);
    return absl::OkStatus();
  });
}

}  // namespace inlay
