// What tests of grammars share: short ways to build them and to ask.
#ifndef INLAY_TESTS_GEMMA_LIKE_GRAMMAR_GRAMMAR_TEXT_H_
#define INLAY_TESTS_GEMMA_LIKE_GRAMMAR_GRAMMAR_TEXT_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/string_view.h"
#include "gemma_like/grammar/compiled_grammar.h"
#include "gemma_like/grammar/grammar_builder.h"
#include "gemma_like/grammar/grammar_matcher.h"
#include "tests/must.h"

namespace inlay {

// A grammar whose start rule is define(builder).
inline absl::StatusOr<std::shared_ptr<const Grammar>> BuildGrammar(
    const std::function<GrammarBuilder::Expr(GrammarBuilder&)>& define) {
  GrammarBuilder builder;
  const auto root = builder.Declare("root");
  builder.Define(root, define(builder));
  return std::move(builder).Build(root);
}

inline std::shared_ptr<CompiledGrammar> Compiled(
    const std::function<GrammarBuilder::Expr(GrammarBuilder&)>& define) {
  return Must(CompiledGrammar::Create(Must(BuildGrammar(define))));
}

enum class Reads { kNot, kAsBeginning, kWhole };

// What the text is to the grammar.
inline Reads Read(const std::shared_ptr<CompiledGrammar>& grammar, absl::string_view text) {
  GrammarMatcher matcher(grammar);
  if (!Must(matcher.AcceptBytes(text))) return Reads::kNot;
  return Must(matcher.CanEnd()) ? Reads::kWhole : Reads::kAsBeginning;
}

}  // namespace inlay

#endif  // INLAY_TESTS_GEMMA_LIKE_GRAMMAR_GRAMMAR_TEXT_H_
