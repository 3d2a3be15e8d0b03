#include "gemma_like/grammar/answer_shape.h"

#include "gemma_like/grammar/gbnf_grammar.h"
#include "gemma_like/grammar/json_schema.h"
#include "gemma_like/grammar/regex_grammar.h"

namespace inlay {

absl::string_view ShapeKindName(AnswerShape::Kind kind) {
  switch (kind) {
    case AnswerShape::Kind::kJsonSchema:
      return "json_schema";
    case AnswerShape::Kind::kRegex:
      return "regex";
    case AnswerShape::Kind::kGbnf:
      return "gbnf";
  }
  return "";
}

absl::StatusOr<std::shared_ptr<const Grammar>> CompileShape(const AnswerShape& shape) {
  switch (shape.kind) {
    case AnswerShape::Kind::kJsonSchema:
      return CompileJsonSchema(shape.source,
                               {.in_order = shape.in_order, .space = JsonSpace::kSerialized});
    case AnswerShape::Kind::kRegex:
      return CompileRegex(shape.source);
    case AnswerShape::Kind::kGbnf:
      break;
  }
  return ParseGbnf(shape.source);
}

}  // namespace inlay
