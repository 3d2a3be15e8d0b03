#include "gemma_like/generation/prompt_steps.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/plural.h"
#include "base/status_macros.h"

namespace inlay {

absl::Status CheckPrompt(const KVCache& cache, absl::Span<const int32_t> tokens) {
  if (tokens.empty()) return absl::InvalidArgumentError("the prompt is empty");
  if (tokens.size() <= cache.max_length() - cache.length()) return absl::OkStatus();
  return PromptTooLong(cache, tokens.size());
}

absl::Status PromptTooLong(const KVCache& cache, size_t tokens, absl::string_view qualifier) {
  const size_t left = cache.max_length() - cache.length();
  return absl::OutOfRangeError(absl::StrCat(
      "the prompt has ", qualifier, Plural(tokens, "token"), ", but only ", Plural(left, "token"),
      " of the context of ", cache.max_length(), left == 1 ? " is left" : " are left"));
}

PromptSteps::~PromptSteps() {
  if (done() || before_ == nullptr) return;
  [[maybe_unused]] const absl::Status status = cache_.Restore(std::move(*before_));
  assert(status.ok());  // a fork of the same conversation
}

absl::Status PromptSteps::Start() {
  if (reuse_.prefixes == nullptr || cache_.length() > 0) return absl::OkStatus();
  INLAY_ASSIGN_OR_RETURN(before_, cache_.Fork());
  // All but the last of these may come from a snapshot.
  const absl::Span<const int32_t> tokens =
      rows_.from < tokens_.size() ? tokens_.first(rows_.from + 1) : tokens_;
  if (std::unique_ptr<KVCache> prefix = reuse_.prefixes->Take(tokens, reuse_.owner);
      prefix != nullptr) {
    INLAY_RETURN_IF_ERROR(cache_.Restore(std::move(*prefix)));
    done_ = reused_ = cache_.length();
  }
  return absl::OkStatus();
}

size_t PromptSteps::NextSnapshot() const {
  size_t next = tokens_.size();
  if (reuse_.stride > 0) next = std::min(next, (done_ / reuse_.stride + 1) * reuse_.stride);
  const auto mark = std::upper_bound(reuse_.marks.begin(), reuse_.marks.end(), done_);
  return mark == reuse_.marks.end() ? next : std::min(next, *mark);
}

absl::StatusOr<absl::Span<const int32_t>> PromptSteps::Next(size_t most) {
  assert(!done() && most > 0);
  return OrOutOfMemory("this prompt", [&]() -> absl::StatusOr<absl::Span<const int32_t>> {
    if (!started_) INLAY_RETURN_IF_ERROR(Start());
    started_ = true;
    // Of what is computed of the prompt only the state to go on from is needed, which leaves memory
    // for the next step: a failure restores `before_`, and the rewinds that a conversation allows
    // at its end do not reach back to here.
    if (done_ > 0 && tokens_.size() - done_ >= cache_.rewind_depth()) {
      assert(before_ != nullptr);
      INLAY_RETURN_IF_ERROR(cache_.Trim(0));
    }
    step_ = std::min({NextSnapshot() - done_, most, cache_.max_append()});
    step_ -= rows() - std::min(rows(), rows_.most);
    // A single step is a transaction itself. Several become one by keeping a snapshot to restore.
    if (!last() && before_ == nullptr) {
      INLAY_ASSIGN_OR_RETURN(before_, cache_.Fork());
    }
    return tokens_.subspan(done_, step_);
  });
}

void PromptSteps::Accept() {
  const bool snapshot =
      reuse_.prefixes != nullptr && end() == NextSnapshot() && (!last() || reuse_.at_end);
  done_ = end();
  step_ = 0;
  if (snapshot) {
    // Prompts that part at one of the other places part exactly there.
    const bool is_mark = std::binary_search(reuse_.marks.begin(), reuse_.marks.end(), done_);
    reuse_.prefixes->Insert(cache_, reuse_.owner,
                            {.rewind = done() ? kEndRewind : 0,
                             .prompt = tokens_.size(),
                             .before_tail = done_ == reuse_.tail_mark,
                             .on_the_way = !done() && !is_mark});
    if (reuse_.at_snapshot != nullptr) reuse_.at_snapshot(cache_);
  }
  if (done()) before_ = nullptr;
}

}  // namespace inlay
