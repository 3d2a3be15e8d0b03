// The formats of strings that JSON schemas name.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_STRING_FORMATS_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_STRING_FORMATS_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace inlay {

// A regular expression for texts of a format, anchored at both ends; none if the name is not known.
// Every text that matches is valid by the standard that JSON schema names for the format, and also
// to the validator ajv; rare spellings (leap seconds, quoted local parts of e-mail addresses) do
// not match.
std::optional<std::string> StringFormat(absl::string_view name);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_STRING_FORMATS_H_
