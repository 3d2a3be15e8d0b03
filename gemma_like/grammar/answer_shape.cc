#include "gemma_like/grammar/answer_shape.h"

#include "base/status_macros.h"
#include "gemma_like/grammar/call_grammar.h"
#include "gemma_like/grammar/call_rules.h"
#include "gemma_like/grammar/compile_regex.h"
#include "gemma_like/grammar/gbnf_grammar.h"
#include "gemma_like/grammar/json_schema.h"

namespace inlay {

absl::string_view ShapeKindName(AnswerShape::Kind kind) {
  switch (kind) {
    case AnswerShape::Kind::kJsonSchema:
      return "json_schema";
    case AnswerShape::Kind::kRegex:
      return "regex";
    case AnswerShape::Kind::kGbnf:
      return "gbnf";
    case AnswerShape::Kind::kCalls:
      return "calls";
  }
  return "";
}

absl::StatusOr<std::shared_ptr<const Grammar>> CompileShape(const AnswerShape& shape,
                                                            const Tokenizer& tokenizer) {
  switch (shape.kind) {
    case AnswerShape::Kind::kJsonSchema:
      return CompileJsonSchema(shape.source,
                               {.in_order = shape.in_order, .space = JsonSpace::kSerialized});
    case AnswerShape::Kind::kRegex:
      return CompileRegex(shape.source);
    case AnswerShape::Kind::kGbnf:
      return ParseGbnf(shape.source);
    case AnswerShape::Kind::kCalls:
      break;
  }
  INLAY_ASSIGN_OR_RETURN(const CallRules rules, ParseCallRules(shape.source));
  return CompileCalls(rules, tokenizer);
}

}  // namespace inlay
