#include "gemma_like/sessions/chat_session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/plural.h"
#include "base/status_macros.h"
#include "base/utf8_stream.h"
#include "gemma_like/generation/prefix_cache.h"
#include "gemma_like/grammar/answer_grammars.h"
#include "ops/views.h"

namespace inlay {

absl::StatusOr<ChatSession> ChatSession::Create(Engine& engine, const Tokenizer& tokenizer,
                                                std::shared_ptr<const ChatFormat> format,
                                                std::unique_ptr<KVCache> cache, std::string system,
                                                GenerateOptions options, size_t snapshots) {
  if (snapshots < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a chat keeps ", snapshots, " snapshots, not at least 1"));
  }
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
    if (turns_.size() >= snapshots_) turns_[turns_.size() - snapshots_].before = nullptr;
    INLAY_ASSIGN_OR_RETURN(const std::shared_ptr<KVCache> before, cache_->Fork());
    std::vector<Turn> turns_before = turns_;  // restored if the answer fails
    auto result = OrOutOfMemory("this chat", [&]() -> absl::StatusOr<GenerateResult> {
      INLAY_ASSIGN_OR_RETURN(const Continuation next, NextWithRoom(user));
      return Answer(user, next, before, on_text, cancel);
    });
    if (!result.ok()) {
      turns_ = std::move(turns_before);
      INLAY_RETURN_IF_ERROR(cache_->Restore(std::move(*before)));
    } else {
      before->Trim(0).IgnoreError();  // an error costs memory alone
    }
    return result;
  });
}

absl::StatusOr<Continuation> ChatSession::NextWithRoom(absl::string_view user) {
  INLAY_ASSIGN_OR_RETURN(Continuation next, Next(user, /*anew=*/false));
  const size_t most = cache_->max_length();
  const size_t reserve = std::min(options_.max_tokens, most / 4);
  if (on_drop_ == nullptr || turns_.empty() || next.keep + next.tokens.size() + reserve <= most)
    return next;
  size_t dropped = 0;
  do {
    ++dropped;
    INLAY_ASSIGN_OR_RETURN(next, Next(user, /*anew=*/true, dropped));
  } while (dropped < turns_.size() && next.tokens.size() > most / 2);
  if (next.tokens.size() > most) return next;  // too long by itself, which is the answer's error
  turns_.erase(turns_.begin(), turns_.begin() + static_cast<ptrdiff_t>(dropped));
  on_drop_(dropped, next.tokens.size());
  return next;
}

absl::StatusOr<GenerateResult> ChatSession::Answer(const std::string& user,
                                                   const Continuation& next,
                                                   std::shared_ptr<const KVCache> before,
                                                   const TextCallback& on_text,
                                                   const CancelCheck& cancel) {
  if (next.keep < cache_->length()) {
    INLAY_RETURN_IF_ERROR(GoBack(next.keep, cancel));
    for (Turn& turn : turns_) {
      if (turn.begin <= next.keep) continue;
      turn.begin = next.keep;
      turn.before = nullptr;
    }
  }
  // Not where this turn changes what was before it.
  if (before->length() != next.keep) before = nullptr;
  turns_.push_back({.user = user,
                    .answer = std::nullopt,
                    .begin = next.keep,
                    .end = 0,
                    .before = std::move(before),
                    .answer_begin = next.keep + next.tokens.size()});
  GenerateOptions options = options_;
  options.sampling.seed += answers_++;
  in_thinking_ = next.in_thinking;
  if (options.grammar != nullptr && in_thinking_)
    options.grammar = options.grammar->After(format_->answer_format().think_end);
  INLAY_ASSIGN_OR_RETURN(GenerateResult result, Generate(engine_, tokenizer_, *cache_, next.tokens,
                                                         options, on_text, cancel));
  if (result.stop_reason == StopReason::kStopText)
    INLAY_RETURN_IF_ERROR(DropStopText(turns_.back().answer_begin, result.text.size()));
  turns_.back().answer = result.text;
  turns_.back().end = cache_->length();
  return result;
}

absl::Status ChatSession::DropStopText(size_t begin, size_t answer_size) {
  const absl::Span<const int32_t> tokens = cache_->tokens();
  // The answer was made of its tokens' bytes by a Utf8Stream, which writes bytes that are no UTF-8
  // as U+FFFD. So its end among these bytes is found in the same way, one byte after the other.
  Utf8Stream characters;
  size_t written = characters.Push(options_.begun).size();
  size_t keep = begin;
  absl::string_view rest;  // what the first token that is not kept has of the answer
  for (; keep < tokens.size(); ++keep) {
    const absl::string_view bytes = ShownText(tokenizer_, tokens[keep], options_.shown_control);
    size_t count = 0;
    for (; count < bytes.size(); ++count) {
      written += characters.Push(bytes.substr(count, 1)).size();
      // A byte belongs to the answer if the character that it is part of does.
      if (written + characters.held().size() > answer_size) break;
    }
    rest = bytes.substr(0, count);
    if (count < bytes.size()) break;
  }
  if (keep == tokens.size()) return absl::OkStatus();
  INLAY_RETURN_IF_ERROR(GoBack(keep, nullptr));
  if (rest.empty()) return absl::OkStatus();
  // A token wrote both the end of the answer and the beginning of the stop text.
  INLAY_ASSIGN_OR_RETURN(const std::vector<int32_t> encoded,
                         tokenizer_.Encode(rest, {.add_bos = false, .continues = true}));
  const absl::Status status =
      Prefill(engine_, *cache_, encoded, FloatRows(nullptr, 0, engine_.info().vocab_size), nullptr);
  if (status.ok()) turns_.back().encoded = encoded.size();
  // The rest may have more tokens than that one, and no place at the end of the context. The answer
  // has been shown; a conversation that lacks its last letters is better than none.
  return absl::IsOutOfRange(status) || absl::IsResourceExhausted(status) ? absl::OkStatus()
                                                                         : status;
}

absl::StatusOr<Continuation> ChatSession::Next(absl::string_view user, bool anew,
                                               size_t dropped) const {
  std::vector<Exchange> before;
  for (size_t i = dropped; i < turns_.size(); ++i)
    before.push_back({turns_[i].user, turns_[i].answer});
  const bool ends_with_answer = !anew && !turns_.empty() && turns_.back().end == cache_->length();
  return format_->Next({.system = system_, .before = before, .user = user},
                       anew ? absl::Span<const int32_t>() : cache_->tokens(), ends_with_answer);
}

absl::StatusOr<GenerateResult> ChatSession::Regenerate(const TextCallback& on_text,
                                                       const CancelCheck& cancel) {
  return OrOutOfMemory("this chat", [&]() -> absl::StatusOr<GenerateResult> {
    if (turns_.empty()) return absl::FailedPreconditionError("there is no answer to regenerate");
    const std::string user = turns_.back().user;
    // Restored if the answer fails.
    INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<KVCache> before, cache_->Fork());
    std::vector<Turn> turns = turns_;
    INLAY_RETURN_IF_ERROR(Rewind(1, cancel));
    auto result = Say(user, on_text, cancel);
    if (!result.ok()) {
      INLAY_RETURN_IF_ERROR(cache_->Restore(std::move(*before)));
      turns_ = std::move(turns);
    }
    return result;
  });
}

absl::Status ChatSession::Rewind(size_t count, const CancelCheck& cancel,
                                 const Progress& progress) {
  return OrOutOfMemory("this chat", [&]() -> absl::Status {
    if (count > turns_.size()) {
      return absl::OutOfRangeError(
          absl::StrCat("cannot rewind ", count, " of ", Plural(turns_.size(), "turn")));
    }
    if (count == 0) return absl::OkStatus();
    const size_t index = turns_.size() - count;
    INLAY_RETURN_IF_ERROR(GoBack(turns_[index].begin, cancel, progress));
    turns_.resize(index);
    return absl::OkStatus();
  });
}

absl::Status ChatSession::GoBack(size_t position, const CancelCheck& cancel,
                                 const Progress& progress) {
  if (cache_->CanRewindTo(position)) return cache_->Rewind(position);
  INLAY_ASSIGN_OR_RETURN(cache_, Beginning(position, cancel, progress));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<KVCache>> ChatSession::Beginning(size_t position,
                                                                const CancelCheck& cancel,
                                                                const Progress& progress) {
  const KVCache* snapshot = empty_.get();
  for (const Turn& turn : turns_) {
    if (turn.before != nullptr && turn.begin <= position) snapshot = turn.before.get();
  }
  INLAY_ASSIGN_OR_RETURN(std::unique_ptr<KVCache> cache, snapshot->Fork());
  const auto missing = cache_->tokens().subspan(cache->length(), position - cache->length());
  if (!missing.empty()) {
    const FloatRows no_logits(nullptr, 0, engine_.info().vocab_size);
    const size_t present = cache->length();
    const CancelCheck check = [&] {
      if (progress) progress(cache->length() - present, missing.size());
      return cancel && cancel();
    };
    INLAY_RETURN_IF_ERROR(Prefill(engine_, *cache, missing, no_logits, check));
  }
  return cache;
}

absl::StatusOr<std::vector<ChosenToken>> ChatSession::LastChances(size_t top,
                                                                  const CancelCheck& cancel) {
  return OrOutOfMemory("this chat", [&]() -> absl::StatusOr<std::vector<ChosenToken>> {
    constexpr size_t kRows = 16;  // of logits at a time, which may be a megabyte each
    const size_t begin = turns_.empty() ? 0 : turns_.back().answer_begin;
    if (begin == 0 || turns_.back().end != cache_->length()) {
      return absl::FailedPreconditionError("there is no answer that was generated here");
    }
    const absl::Span<const int32_t> tokens =
        cache_->tokens().first(cache_->length() - turns_.back().encoded);
    std::unique_ptr<KVCache> cache;
    if (cache_->CanRewindTo(begin - 1)) {
      INLAY_ASSIGN_OR_RETURN(cache, cache_->Fork());
      INLAY_RETURN_IF_ERROR(cache->Rewind(begin - 1));
    } else {
      INLAY_ASSIGN_OR_RETURN(cache, Beginning(begin - 1, cancel));
    }
    const size_t vocab_size = engine_.info().vocab_size;
    std::vector<float> memory(kRows * vocab_size);
    std::vector<ChosenToken> chosen;
    // The logits after each token are those for the next one.
    for (size_t at = begin; at < tokens.size();) {
      const size_t rows = std::min(kRows, tokens.size() - at);
      const FloatRows logits(memory.data(), rows, vocab_size);
      const SequenceStep step{
          .cache = cache.get(), .tokens = tokens.subspan(at - 1, rows), .logit_rows = rows};
      INLAY_RETURN_IF_ERROR(engine_.Forward({&step, 1}, logits, cancel));
      for (size_t r = 0; r < rows; ++r, ++at) {
        const absl::Span<const float> row =
            TokenLogits(tokenizer_, {logits.data + r * vocab_size, vocab_size});
        chosen.push_back(ChanceOf(row, tokens[at], top));
      }
    }
    return chosen;
  });
}

absl::string_view ChatSession::AnswerWithoutThoughts(const Turn& turn) const {
  if (!turn.answer.has_value()) return "";
  absl::string_view answer = *turn.answer;
  const absl::string_view think_end = format_->answer_format().think_end;
  const size_t end = think_end.empty() ? absl::string_view::npos : answer.find(think_end);
  if (end != absl::string_view::npos) answer.remove_prefix(end + think_end.size());
  return absl::StripAsciiWhitespace(answer);
}

absl::Status ChatSession::SetSystem(std::string system) {
  INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<KVCache> empty, empty_->Fork());
  INLAY_RETURN_IF_ERROR(cache_->Restore(std::move(*empty)));
  for (Turn& turn : turns_) {
    turn.begin = 0;
    turn.before = nullptr;
  }
  system_ = std::move(system);
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
    INLAY_RETURN_IF_ERROR(fork->Trim(kEndRewind));
    forks_.emplace(last_fork_ + 1,
                   Branch{.cache = std::move(fork), .turns = turns_, .system = system_});
    return ++last_fork_;
  });
}

absl::StatusOr<std::optional<size_t>> ChatSession::SwitchTo(size_t fork) {
  return OrOutOfMemory("this chat", [&]() -> absl::StatusOr<std::optional<size_t>> {
    const auto at = forks_.find(fork);
    if (at == forks_.end()) return NoFork(fork);
    std::vector<Turn> turns = at->second.turns;
    std::string system = at->second.system;
    INLAY_ASSIGN_OR_RETURN(std::unique_ptr<KVCache> cache, at->second.cache->Fork());
    std::optional<size_t> left;
    if (!turns_.empty() && !IsForked()) {
      INLAY_ASSIGN_OR_RETURN(left, Fork());
    }
    cache_ = std::move(cache);
    turns_ = std::move(turns);
    system_ = std::move(system);
    return left;
  });
}

bool ChatSession::IsForked() const {
  return std::any_of(forks_.begin(), forks_.end(), [this](const auto& fork) {
    const Branch& branch = fork.second;
    return branch.system == system_ && branch.cache->tokens() == cache_->tokens() &&
           std::equal(branch.turns.begin(), branch.turns.end(), turns_.begin(), turns_.end(),
                      [](const Turn& a, const Turn& b) {
                        return a.user == b.user && a.answer == b.answer;
                      });
  });
}

absl::Status ChatSession::DropFork(size_t fork) {
  return OrOutOfMemory("this chat", [&]() -> absl::Status {
    return forks_.erase(fork) > 0 ? absl::OkStatus() : NoFork(fork);
  });
}

absl::Status ChatSession::NoFork(size_t fork) const {
  return absl::OutOfRangeError(
      absl::StrCat("there is no fork ", fork, " among ", Plural(forks_.size(), "fork")));
}

std::vector<ChatSession::ForkSize> ChatSession::forks() const {
  std::vector<ForkSize> sizes;
  for (const auto& [number, branch] : forks_) {
    sizes.push_back(
        {.number = number, .turns = branch.turns.size(), .tokens = branch.cache->length()});
  }
  return sizes;
}

}  // namespace inlay
