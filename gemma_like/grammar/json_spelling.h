// The one spelling of a text as a JSON string: the one of JavaScript's JSON.stringify.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_JSON_SPELLING_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_JSON_SPELLING_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace inlay {

// `text`, which must be UTF-8, in double quotes. `"` and `\` get a backslash, the other characters
// below U+0020 are \b \f \n \r \t or else \u00xx with lower-case digits, and everything else stands
// for itself.
std::string JsonSpelling(absl::string_view text);

// Reads what stands between the quotes of such spellings, byte by byte: every text has exactly one
// spelling, so bytes that are accepted spell one text, and different bytes different ones.
class JsonSpellingReader {
 public:
  // Where it stands: kBetween before and after each character, other values within one.
  using State = uint32_t;
  static constexpr State kBetween = 0;
  static constexpr State kStates = 14;

  // The state after `byte`; none where no spelling goes on so. The closing quote is not part of it.
  static std::optional<State> Next(State state, uint8_t byte);
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_JSON_SPELLING_H_
