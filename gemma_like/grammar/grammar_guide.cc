#include "gemma_like/grammar/grammar_guide.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace inlay {
namespace {

// Text that must come is looked for so far ahead.
constexpr size_t kMostForced = 256;

}  // namespace

GrammarGuide::GrammarGuide(const Tokenizer& tokenizer, std::shared_ptr<const AnswerGrammar> grammar)
    : tokenizer_(tokenizer),
      grammar_(std::move(grammar)),
      matcher_(grammar_->compiled),
      waits_(!grammar_->shape.after.empty()) {}

absl::StatusOr<absl::Span<const uint64_t>> GrammarGuide::Allowed() {
  absl::Span<const uint64_t> allowed;
  if (waits_) {
    allowed_.assign(grammar_->tokens->words(), ~uint64_t{0});
    for (const int32_t end : grammar_->ends) Clear(end);
  } else {
    INLAY_ASSIGN_OR_RETURN(allowed, matcher_.Allowed());
    allowed_.assign(allowed.begin(), allowed.end());
    if (may_space_) {
      for (const int32_t token : grammar_->spaces) Set(token);
    }
  }
  for (const int32_t token : refused_) Clear(token);
  if (std::all_of(allowed_.begin(), allowed_.end(), [](uint64_t word) { return word == 0; })) {
    return absl::FailedPreconditionError(
        "no token of the vocabulary goes on with the shape that the answer must have");
  }
  return absl::MakeConstSpan(allowed_);
}

void GrammarGuide::Set(int32_t token) {
  const auto id = static_cast<size_t>(token);
  allowed_[id / 64] |= uint64_t{1} << id % 64;
}

void GrammarGuide::Clear(int32_t token) {
  const auto id = static_cast<size_t>(token);
  allowed_[id / 64] &= ~(uint64_t{1} << id % 64);
}

absl::StatusOr<bool> GrammarGuide::Accept(int32_t token) {
  const bool was_waiting = waits_;
  INLAY_ASSIGN_OR_RETURN(bool accepted, waits_ ? AcceptFree(token) : matcher_.Accept(token));
  // White space that the shape itself begins with belongs to the shape.
  accepted = accepted || (may_space_ && std::binary_search(grammar_->spaces.begin(),
                                                           grammar_->spaces.end(), token));
  if (accepted) {
    refused_.clear();
    if (!was_waiting) may_space_ = false;
  } else {
    refused_.push_back(token);
  }
  return accepted;
}

absl::StatusOr<bool> GrammarGuide::AcceptFree(int32_t token) {
  if (tokenizer_.IsEndOfGeneration(token)) return false;
  const std::string& after = grammar_->shape.after;
  std::string text = absl::StrCat(tail_, tokenizer_.TokenBytes(token));
  const size_t found = text.find(after);
  if (found == std::string::npos) {
    tail_ = text.substr(text.size() - std::min(text.size(), after.size() - 1));
    return true;
  }
  // Models write line ends between thoughts and answer, in the same token or in one of its own.
  const absl::string_view rest =
      absl::StripLeadingAsciiWhitespace(absl::string_view(text).substr(found + after.size()));
  INLAY_ASSIGN_OR_RETURN(const bool begins, matcher_.AcceptBytes(rest));
  waits_ = !begins;
  may_space_ = begins && rest.empty();
  return begins;
}

absl::StatusOr<std::vector<int32_t>> GrammarGuide::Forced() {
  // Models write calls in tokens of their own, which are not always those of the text.
  if (waits_ || grammar_->shape.kind == AnswerShape::Kind::kCalls) return std::vector<int32_t>();
  INLAY_ASSIGN_OR_RETURN(const std::string text, matcher_.ForcedBytes(kMostForced));
  if (text.empty()) return std::vector<int32_t>();
  absl::StatusOr<std::vector<int32_t>> tokens = tokenizer_.Encode(text, {.add_bos = false});
  // Text that is not whole characters has no tokens of its own.
  if (!tokens.ok()) {
    if (absl::IsResourceExhausted(tokens.status())) return tokens.status();
    return std::vector<int32_t>();
  }
  GrammarMatcher ahead = matcher_;
  INLAY_ASSIGN_OR_RETURN(const bool read, ahead.AcceptBytes(text));
  INLAY_ASSIGN_OR_RETURN(const bool whole, ahead.MustEnd());
  // What follows the text may belong to its last token.
  if (!(read && whole) && !tokens->empty()) tokens->pop_back();
  // Some tokenizers put a space before a text.
  absl::string_view left = text;
  for (const int32_t token : *tokens) {
    const absl::string_view bytes = grammar_->tokens->Bytes(token);
    if (bytes.empty() || left.substr(0, bytes.size()) != bytes) return std::vector<int32_t>();
    left.remove_prefix(bytes.size());
  }
  return tokens;
}

absl::StatusOr<bool> GrammarGuide::IsComplete() {
  if (waits_) return false;
  if (matcher_.ended()) return true;
  return matcher_.MustEnd();
}

}  // namespace inlay
