// Regular expressions as grammars.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_REGEX_GRAMMAR_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_REGEX_GRAMMAR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gemma_like/grammar/character_speller.h"
#include "gemma_like/grammar/grammar_builder.h"
#include "gemma_like/grammar/regex_parser.h"

namespace inlay {

enum class RegexMatch {
  kWhole,   // the whole text matches
  kSearch,  // some part of the text matches, as in JSON schema
};

// The texts that `regex` matches, spelled by `speller`.
GrammarBuilder::Expr AddRegex(GrammarBuilder& builder, CharacterSpeller& speller,
                              const Regex& regex, RegexMatch match);

// The texts that match `pattern` as a whole, in UTF-8. Errors: those of ParseRegex and of
// GrammarBuilder::Build.
absl::StatusOr<std::shared_ptr<const Grammar>> CompileRegex(absl::string_view pattern);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_REGEX_GRAMMAR_H_
