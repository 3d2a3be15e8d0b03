#include "gemma_like/speculate.h"

#include <algorithm>
#include <cassert>

#include "io/status_macros.h"

namespace inlay {

std::vector<int32_t> PromptLookup::Draft(absl::Span<const int32_t> tokens, size_t most) {
  // One pass from the end: how much of the text's end stands before each position?
  size_t best = kLeastMatched - 1;
  size_t from = 0;
  for (size_t end = tokens.size() - std::min<size_t>(tokens.size(), 1); end > best; --end) {
    size_t matched = 0;
    while (matched < std::min(end, kMostMatched) &&
           tokens[end - 1 - matched] == tokens[tokens.size() - 1 - matched]) {
      ++matched;
    }
    if (matched <= best) continue;
    best = matched;
    from = end;
    if (best == kMostMatched) break;
  }
  if (from == 0) return {};
  // What followed may be the text's end itself, and then what would follow that.
  std::vector<int32_t> draft;
  for (size_t at = from; draft.size() < most; ++at) {
    draft.push_back(at < tokens.size() ? tokens[at] : draft[at - tokens.size()]);
  }
  return draft;
}

DraftedDecoder::DraftedDecoder(Engine& engine, KVCache& cache, Drafter* drafter, size_t most)
    : engine_(engine),
      cache_(cache),
      drafter_(drafter),
      most_(drafter == nullptr ? 0 : most),
      vocab_size_(engine.info().vocab_size),
      logits_((1 + most_) * vocab_size_),
      length_(cache.length()) {
  assert(most <= kMaxDraft && kMaxDraft <= cache.rewind_depth());
}

DraftedDecoder::~DraftedDecoder() { DropGuesses(); }

void DraftedDecoder::Synchronize() { length_ = cache_.length(); }

void DraftedDecoder::DropGuesses() {
  rows_ = row_ + 1;
  if (cache_.length() == length_) return;
  [[maybe_unused]] const absl::Status status = cache_.Rewind(length_);
  // The last thing that happened to the cache was an append of at most 1 + kMaxDraft tokens, all of
  // which but the first may go.
  assert(status.ok());
}

// Rows of before stay in place until this has succeeded: a failed pass writes no logits.
absl::Status DraftedDecoder::AppendAll(absl::Span<const int32_t> tokens) {
  const SequenceStep step{.cache = &cache_, .tokens = tokens, .logit_rows = tokens.size()};
  return engine_.Forward({&step, 1}, FloatRows(logits_.data(), tokens.size(), vocab_size_));
}

absl::Status DraftedDecoder::Append(int32_t token) {
  if (row_ + 1 < rows_ && cache_.tokens()[length_] == token) {
    ++row_;
    ++length_;
    ++accepted_;
    return absl::OkStatus();
  }
  DropGuesses();
  std::vector<int32_t> tokens = {token};
  const size_t room = std::min(cache_.max_length() - std::min(cache_.max_length(), length_ + 1),
                               std::min(cache_.max_append(), engine_.info().max_batch) - 1);
  const size_t most = std::min(most_, room);
  if (most > 0) {
    std::vector<int32_t> text(cache_.tokens().begin(), cache_.tokens().end());
    text.push_back(token);
    const std::vector<int32_t> draft = drafter_->Draft(text, most);
    assert(draft.size() <= most);
    tokens.insert(tokens.end(), draft.begin(), draft.end());
  }
  absl::Status status = AppendAll(tokens);
  // Guesses need memory too; where there is too little of it, the token alone may still fit.
  if (absl::IsResourceExhausted(status) && tokens.size() > 1) {
    tokens.erase(tokens.begin() + 1, tokens.end());
    status = AppendAll(tokens);
  }
  INLAY_RETURN_IF_ERROR(status);
  drafted_ += tokens.size() - 1;
  rows_ = tokens.size();
  row_ = 0;
  ++length_;
  return absl::OkStatus();
}

}  // namespace inlay
