// Grammars in GBNF, the notation of llama.cpp.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_GBNF_GRAMMAR_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_GBNF_GRAMMAR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gemma_like/grammar/grammar_builder.h"

namespace inlay {

// The texts of the rule `root` of a grammar like
//
//   root ::= "yes" | "no" (" " word){1,3}   # a comment
//   word ::= [a-z]+ | [^\x00-\x7F] | .
//
// Literals, classes of code points, any code point (.), names of rules, groups, alternatives, ? * +
// {2} {2,} {2,5}. A rule ends with its line, except in a group and after "::=" and "|". A byte
// order mark before it all is skipped.
//
// InvalidArgument, with line and column (in bytes, from 1): what is not written so, a rule that is
// defined twice or not at all, tokens (<...>), which are not supported. Then the errors of
// GrammarBuilder::Build, by the rule's name.
absl::StatusOr<std::shared_ptr<const Grammar>> ParseGbnf(absl::string_view text);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_GBNF_GRAMMAR_H_
