// Answers that are calls of tools, as grammars.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_CALL_GRAMMAR_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_CALL_GRAMMAR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "gemma_like/grammar/call_rules.h"
#include "gemma_like/grammar/grammar_builder.h"
#include "io/tokenizer/tokenizer.h"

namespace inlay {

// The answers that keep `rules`, of a model with this vocabulary: a marker that is one of its
// control tokens is that token. Calls are written as families write them, with a little white
// space more or less.
//
// Errors: InvalidArgument, naming the tool, for parameters that are not of type object or whose
// schema CompileJsonSchema would refuse, and for rules that no answer can keep; ResourceExhausted
// as CompileJsonSchema, for all schemas together.
absl::StatusOr<std::shared_ptr<const Grammar>> CompileCalls(const CallRules& rules,
                                                            const Tokenizer& tokenizer);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_CALL_GRAMMAR_H_
