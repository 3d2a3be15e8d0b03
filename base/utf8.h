// UTF-8: one code point at a time, and checking.
#ifndef INLAY_BASE_UTF8_H_
#define INLAY_BASE_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace inlay {

// The code point that replaces bytes that are not UTF-8.
inline constexpr char32_t kReplacementCharacter = 0xFFFD;

inline constexpr size_t kLongestCharacter = 4;  // in bytes

struct CodePoint {
  char32_t value = kReplacementCharacter;
  uint32_t length = 1;  // bytes, 1 to 4
  bool valid = false;
};

// The code point that `text`, which must not be empty, starts with. Where no well-formed sequence
// (Unicode 15, table 3-7: no surrogates, no overlong forms, at most U+10FFFF) starts, `valid` is
// false, `value` is U+FFFD and `length` covers the maximal prefix of one, at least one byte, so
// that each ill-formed stretch is replaced as the Unicode standard recommends (section 3.9).
CodePoint DecodeUtf8(absl::string_view text);

bool IsValidUtf8(absl::string_view text);

// How many of the last bytes of `text` (0 to 3) are the start of a sequence that more bytes could
// make well-formed.
size_t IncompleteUtf8Tail(absl::string_view text);

void AppendUtf8(char32_t code_point, std::string* out);

}  // namespace inlay

#endif  // INLAY_BASE_UTF8_H_
