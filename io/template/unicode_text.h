// Texts as sequences of code points, in the sense of Python's strings: their length, parts, spaces,
// letters' case.
#ifndef INLAY_IO_TEMPLATE_UNICODE_TEXT_H_
#define INLAY_IO_TEMPLATE_UNICODE_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace inlay::jinja {

// A byte that is not part of well-formed UTF-8 counts as a code point of its own.

// str.isspace: the property White_Space and the separators U+001C to U+001F.
bool IsSpace(char32_t code_point);
// str.isprintable.
bool IsPrintable(char32_t code_point);
// Whether a case that is not its own exists, and which is its own.
bool IsUpper(char32_t code_point);
bool IsLower(char32_t code_point);

enum class Case { kUpper, kLower, kTitle };
// Appends the code point in this case, up to three code points.
void AppendInCase(char32_t code_point, Case to, std::string* out);

size_t CountCodePoints(absl::string_view text);
// The byte where the code point of this index starts; text.size() when there is none.
size_t ByteOfCodePoint(absl::string_view text, size_t index);
// The bytes of the last code point; 0 when there is none.
size_t LastCodePointSize(absl::string_view text);

// The bytes of white space that the text begins or ends with.
size_t LeadingSpace(absl::string_view text);
size_t TrailingSpace(absl::string_view text);

// The bytes of the line break that the text begins with (str.splitlines), 0 for none.
size_t LineBreakSize(absl::string_view text);

}  // namespace inlay::jinja

#endif  // INLAY_IO_TEMPLATE_UNICODE_TEXT_H_
