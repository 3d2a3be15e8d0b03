#include "gemma_like/grammar/answer_grammars.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"

namespace inlay {

std::shared_ptr<const AnswerGrammar> AnswerGrammar::After(absl::string_view text) const {
  auto copy = std::make_shared<AnswerGrammar>(*this);
  copy->shape.after = std::string(text);
  return copy;
}

absl::StatusOr<std::shared_ptr<const AnswerGrammar>> AnswerGrammars::Get(const AnswerShape& shape) {
  if (!shape.after.empty()) {
    AnswerShape at_once = shape;
    at_once.after.clear();
    INLAY_ASSIGN_OR_RETURN(const std::shared_ptr<const AnswerGrammar> grammar, Get(at_once));
    return OrOutOfMemory("a grammar",
                         [&]() -> absl::StatusOr<std::shared_ptr<const AnswerGrammar>> {
                           return grammar->After(shape.after);
                         });
  }
  const auto find = [&] {
    const auto at = std::find_if(recent_.begin(), recent_.end(),
                                 [&](const auto& grammar) { return grammar->shape == shape; });
    if (at == recent_.end()) return std::shared_ptr<const AnswerGrammar>();
    recent_.splice(recent_.begin(), recent_, at);
    return recent_.front();
  };
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (std::shared_ptr<const AnswerGrammar> known = find()) return known;
  }
  return OrOutOfMemory("a grammar", [&]() -> absl::StatusOr<std::shared_ptr<const AnswerGrammar>> {
    INLAY_ASSIGN_OR_RETURN(auto compiled, Compile(shape));
    const std::lock_guard<std::mutex> lock(mutex_);
    // Another thread may have compiled the same one: what one answer finds
    // out about a grammar should serve all.
    if (std::shared_ptr<const AnswerGrammar> known = find()) return known;
    recent_.push_front(compiled);
    if (recent_.size() > kKept) recent_.pop_back();
    return compiled;
  });
}

absl::Status AnswerGrammars::SortVocabulary() {
  const std::lock_guard<std::mutex> lock(vocabulary_mutex_);
  if (tokens_ != nullptr) return absl::OkStatus();
  if (tokenizer_.size() == 0) {
    return absl::FailedPreconditionError(
        "an answer of a given shape needs a vocabulary, which the model's file lacks");
  }
  ends_.clear();
  spaces_.clear();
  for (size_t id = 0; id < tokenizer_.size(); ++id) {
    const auto token = static_cast<int32_t>(id);
    if (tokenizer_.IsEndOfGeneration(token)) ends_.push_back(token);
    const absl::string_view piece = tokenizer_.Piece(token);
    if (!piece.empty() && absl::StripLeadingAsciiWhitespace(piece).empty())
      spaces_.push_back(token);
  }
  INLAY_ASSIGN_OR_RETURN(tokens_, TokenTrie::Create(tokenizer_));
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const AnswerGrammar>> AnswerGrammars::Compile(
    const AnswerShape& shape) {
  INLAY_ASSIGN_OR_RETURN(const std::shared_ptr<const Grammar> grammar,
                         CompileShape(shape, tokenizer_));
  INLAY_RETURN_IF_ERROR(SortVocabulary());
  INLAY_ASSIGN_OR_RETURN(std::shared_ptr<CompiledGrammar> compiled,
                         CompiledGrammar::Create(grammar, {.tokens = tokens_, .ends = ends_}));
  return std::make_shared<const AnswerGrammar>(AnswerGrammar{.shape = shape,
                                                             .compiled = std::move(compiled),
                                                             .tokens = tokens_,
                                                             .ends = ends_,
                                                             .spaces = spaces_});
}

}  // namespace inlay
