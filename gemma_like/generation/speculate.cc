#include "gemma_like/generation/speculate.h"

#include <algorithm>
#include <cassert>

#include "base/status_macros.h"

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

Guesses::Guesses(KVCache& cache, Drafter* drafter, size_t most)
    : cache_(cache),
      drafter_(drafter),
      most_(drafter == nullptr ? 0 : most),
      length_(cache.length()) {
  assert(most <= kMost && kMost <= cache.rewind_depth());
}

Guesses::~Guesses() { Drop(); }

void Guesses::Drop() {
  if (cache_.length() <= length_) return;
  [[maybe_unused]] const absl::Status status = cache_.Rewind(length_);
  // The last thing that happened to the cache was an append of at most 1 + kMost tokens, all of
  // which but the first may go.
  assert(status.ok());
}

bool Guesses::Follow(int32_t token) {
  if (cache_.length() <= length_ || cache_.tokens()[length_] != token) return false;
  ++row_;
  ++length_;
  ++accepted_;
  return true;
}

absl::Span<const int32_t> Guesses::Plan(int32_t token, size_t most) {
  assert(most > 0);
  Drop();
  planned_ = {token};
  const size_t room = cache_.max_length() - std::min(cache_.max_length(), length_ + 1);
  const size_t guesses = std::min({most_, room, cache_.max_append() - 1, most - 1});
  if (guesses > 0) {
    std::vector<int32_t> text(cache_.tokens().begin(), cache_.tokens().end());
    text.push_back(token);
    const std::vector<int32_t> draft = drafter_->Draft(text, guesses);
    assert(draft.size() <= guesses);
    planned_.insert(planned_.end(), draft.begin(), draft.end());
  }
  return planned_;
}

void Guesses::Appended() {
  assert(cache_.length() == length_ + planned_.size());
  drafted_ += planned_.size() - 1;
  row_ = 0;
  ++length_;
}

DraftedDecoder::DraftedDecoder(Engine& engine, KVCache& cache, Drafter* drafter, size_t most)
    : engine_(engine),
      cache_(cache),
      guesses_(cache, drafter, most),
      vocab_size_(engine.info().vocab_size),
      logits_((1 + (drafter == nullptr ? 0 : most)) * vocab_size_) {}

absl::Status DraftedDecoder::Append(int32_t token) {
  if (guesses_.Follow(token)) return absl::OkStatus();
  // Rows of before stay in place until this has succeeded: a failed pass writes no logits.
  const auto append = [&](size_t most) {
    const absl::Span<const int32_t> tokens = guesses_.Plan(token, most);
    const SequenceStep step{.cache = &cache_, .tokens = tokens, .logit_rows = tokens.size()};
    return engine_.Forward({&step, 1}, FloatRows(logits_.data(), tokens.size(), vocab_size_));
  };
  absl::Status status = append(engine_.info().max_batch);
  // Guesses need memory too; where there is too little of it, the token alone may still fit.
  if (absl::IsResourceExhausted(status)) status = append(1);
  if (status.ok()) guesses_.Appended();
  return status;
}

}  // namespace inlay
