// Inputs that clients may give as text or as the numbers of tokens.
#ifndef INLAY_SERVE_API_TEXT_OR_TOKENS_H_
#define INLAY_SERVE_API_TEXT_OR_TOKENS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "serve/api/field_reader.h"

namespace inlay::serve {

using TextOrTokens = std::variant<std::string, std::vector<int32_t>>;

// A list of the numbers of tokens, each from 0 to 2^31 - 1. Errors are named after `path`.
std::vector<int32_t> ReadTokens(const Json& list, const std::string& path, absl::Status* error);

// A member that must be there: a text, a list of 1 to `most` texts, a list of tokens, or a list of
// such lists.
std::vector<TextOrTokens> ReadTextsOrTokens(FieldReader& body, absl::string_view key, size_t most);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_API_TEXT_OR_TOKENS_H_
