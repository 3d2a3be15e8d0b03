#include "gemma_like/grammar/grammar_matcher.h"

#include <algorithm>
#include <cassert>
#include <mutex>
#include <utility>
#include <vector>

#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "gemma_like/grammar/grammar_builder.h"

namespace inlay {

GrammarMatcher::GrammarMatcher(std::shared_ptr<CompiledGrammar> grammar)
    : grammar_(std::move(grammar)) {}

template <class Act>
auto GrammarMatcher::Locked(const Act& act)
    -> decltype(act(static_cast<CompiledGrammar::Place*>(nullptr))) {
  return OrOutOfMemory("a grammar's states", [&]() -> decltype(act(&place_)) {
    const std::lock_guard<std::mutex> lock(grammar_->mutex_);
    try {
      INLAY_RETURN_IF_ERROR(grammar_->Find(text_, &place_));
      return act(&place_);
    } catch (...) {
      grammar_->broken_ = true;
      throw;
    }
  });
}

absl::StatusOr<absl::Span<const uint64_t>> GrammarMatcher::Allowed() {
  using Result = absl::StatusOr<absl::Span<const uint64_t>>;
  assert(grammar_->masks_.has_value());
  return Locked([&](CompiledGrammar::Place* place) -> Result {
    if (ended_) {
      allowed_ = std::make_shared<const TokenBits>(grammar_->options_.tokens->words());
    } else {
      INLAY_ASSIGN_OR_RETURN(allowed_, grammar_->AllowedAt(place));
    }
    return absl::MakeConstSpan(*allowed_);
  });
}

absl::StatusOr<bool> GrammarMatcher::Accept(int32_t token) {
  assert(grammar_->masks_.has_value());
  const std::vector<int32_t>& ends = grammar_->options_.ends;
  if (std::find(ends.begin(), ends.end(), token) != ends.end()) {
    INLAY_ASSIGN_OR_RETURN(const bool can_end, CanEnd());
    if (!can_end || ended_) return false;
    ended_ = true;
    return true;
  }
  const absl::string_view bytes = grammar_->options_.tokens->Bytes(token);
  if (bytes.empty()) return false;
  return AcceptBytes(bytes);
}

absl::StatusOr<bool> GrammarMatcher::AcceptBytes(absl::string_view bytes) {
  if (ended_) return bytes.empty();
  return Locked([&](CompiledGrammar::Place* place) -> absl::StatusOr<bool> {
    CompiledGrammar::Place next = *place;
    INLAY_RETURN_IF_ERROR(grammar_->Read(bytes, &next));
    if (next.config == Automaton::kDead) return false;
    text_.append(bytes.data(), bytes.size());
    *place = next;
    return true;
  });
}

absl::StatusOr<bool> GrammarMatcher::CanEnd() {
  return Locked([&](const CompiledGrammar::Place* place) -> absl::StatusOr<bool> {
    return grammar_->automaton_.CanEnd(place->config);
  });
}

absl::StatusOr<bool> GrammarMatcher::MustEnd() {
  return Locked([&](const CompiledGrammar::Place* place) -> absl::StatusOr<bool> {
    return !grammar_->automaton_.MayGoOn(place->config);
  });
}

absl::StatusOr<std::string> GrammarMatcher::ForcedBytes(size_t most) {
  return Locked([&](const CompiledGrammar::Place* place) -> absl::StatusOr<std::string> {
    CompiledGrammar::Place next = *place;
    std::string forced;
    while (forced.size() < most) {
      const auto byte = grammar_->OnlyByte(next.config);
      if (!byte.has_value() || *byte == kControlTokenByte) break;
      forced.push_back(static_cast<char>(*byte));
      INLAY_RETURN_IF_ERROR(grammar_->Read({&forced.back(), 1}, &next));
    }
    return forced;
  });
}

}  // namespace inlay
