#include "gemma_like/generation/speculate.h"

#include <algorithm>
#include <cassert>

#include "base/status_macros.h"
#include "cache/input_window.h"

namespace inlay {

static_assert(1 + DraftedTokens::kMost <= InputWindow::kShort,
              "a token and what is drafted after it should need no second ring");

std::vector<int32_t> PromptLookup::Draft(absl::Span<const int32_t> tokens, size_t most) {
  // One pass from the end: how many of the text's last tokens precede each position?
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
  // If what followed reaches the end of the text, the draft continues with its own first tokens.
  std::vector<int32_t> draft;
  for (size_t at = from; draft.size() < most; ++at) {
    draft.push_back(at < tokens.size() ? tokens[at] : draft[at - tokens.size()]);
  }
  return draft;
}

DraftedTokens::DraftedTokens(KVCache& cache, Drafter* drafter, size_t most)
    : cache_(cache),
      drafter_(drafter),
      most_(drafter == nullptr ? 0 : most),
      length_(cache.length()) {
  assert(most <= kMost && kMost <= cache.rewind_depth());
}

DraftedTokens::~DraftedTokens() { (void)Drop(); }

absl::Status DraftedTokens::Drop() {
  if (cache_.length() <= length_) return absl::OkStatus();
  // The last operation on the cache was an append of at most 1 + kMost tokens, the first of which
  // stays: that can be rewound, but those who follow the cache may have no memory.
  return cache_.Rewind(length_);
}

bool DraftedTokens::Follow(int32_t token) {
  if (cache_.length() <= length_ || cache_.tokens()[length_] != token) return false;
  ++row_;
  ++length_;
  ++accepted_;
  return true;
}

absl::StatusOr<absl::Span<const int32_t>> DraftedTokens::Plan(int32_t token, size_t most) {
  assert(most > 0);
  INLAY_RETURN_IF_ERROR(Drop());
  planned_ = {token};
  certain_ = 1;
  const size_t room = cache_.max_length() - std::min(cache_.max_length(), length_ + 1);
  const size_t most_drafted = std::min({most_, room, cache_.max_append() - 1, most - 1});
  if (most_drafted > 0) {
    std::vector<int32_t> text(cache_.tokens().begin(), cache_.tokens().end());
    text.push_back(token);
    const std::vector<int32_t> draft = drafter_->Draft(text, most_drafted);
    assert(draft.size() <= most_drafted);
    planned_.insert(planned_.end(), draft.begin(), draft.end());
  }
  return absl::MakeConstSpan(planned_);
}

absl::StatusOr<absl::Span<const int32_t>> DraftedTokens::PlanCertain(
    absl::Span<const int32_t> tokens, size_t most) {
  assert(most > 0 && !tokens.empty());
  INLAY_RETURN_IF_ERROR(Drop());
  const absl::Span<const int32_t> first = tokens.subspan(0, std::min(most, cache_.max_append()));
  planned_.assign(first.begin(), first.end());
  certain_ = planned_.size();
  return absl::MakeConstSpan(planned_);
}

void DraftedTokens::Appended() {
  assert(cache_.length() == length_ + planned_.size());
  drafted_ += planned_.size() - certain_;
  row_ = 0;
  length_ += certain_;
}

DraftedDecoder::DraftedDecoder(Engine& engine, KVCache& cache, Drafter* drafter, size_t most)
    : engine_(engine),
      cache_(cache),
      drafted_tokens_(cache, drafter, most),
      vocab_size_(engine.info().vocab_size),
      logits_((1 + (drafter == nullptr ? 0 : most)) * vocab_size_) {}

absl::Status DraftedDecoder::Append(int32_t token) {
  if (drafted_tokens_.Follow(token)) return absl::OkStatus();
  // The previous logits stay in place until this succeeds: a failed pass writes none.
  const auto append = [&](size_t most) -> absl::Status {
    INLAY_ASSIGN_OR_RETURN(const absl::Span<const int32_t> tokens,
                           drafted_tokens_.Plan(token, most));
    const SequenceStep step{.cache = &cache_, .tokens = tokens, .logit_rows = tokens.size()};
    return engine_.Forward({&step, 1}, FloatRows(logits_.data(), tokens.size(), vocab_size_));
  };
  absl::Status status = append(engine_.info().max_batch);
  // Drafted tokens need memory too: where there is too little of it, the token alone may still fit.
  if (absl::IsResourceExhausted(status)) status = append(1);
  if (status.ok()) drafted_tokens_.Appended();
  return status;
}

}  // namespace inlay
