// Whole answers that match a regular expression.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_COMPILE_REGEX_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_COMPILE_REGEX_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gemma_like/grammar/grammar.h"

namespace inlay {

// The texts that match `pattern` as a whole, in UTF-8. Errors: those of ParseRegex, AddText and
// GrammarBuilder::Build.
absl::StatusOr<std::shared_ptr<const Grammar>> CompileRegex(absl::string_view pattern);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_COMPILE_REGEX_H_
