// What an answer has to look like, as requests say it.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_ANSWER_SHAPE_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_ANSWER_SHAPE_H_

#include <compare>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gemma_like/grammar/grammar.h"
#include "io/tokenizer/tokenizer.h"

namespace inlay {

struct AnswerShape {
  enum class Kind { kJsonSchema, kRegex, kGbnf, kCalls };

  Kind kind = Kind::kJsonSchema;
  std::string source;     // the schema, regular expression, grammar or CallRules as JSON
  bool in_order = false;  // members of JSON objects come in the order of the schema
  // The shape begins after the first occurrence of this text, which ends the model's thoughts; the
  // text before it is free. "": it begins at once.
  std::string after = {};

  auto operator<=>(const AnswerShape&) const = default;
};

// "json_schema", "regex", "gbnf", "calls".
absl::string_view ShapeKindName(AnswerShape::Kind kind);

// The texts of this shape, of a model with this vocabulary. Errors: those of CompileJsonSchema,
// CompileRegex, ParseGbnf, ParseCallRules and CompileCalls.
absl::StatusOr<std::shared_ptr<const Grammar>> CompileShape(const AnswerShape& shape,
                                                            const Tokenizer& tokenizer);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_ANSWER_SHAPE_H_
