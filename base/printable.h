// Makes text from files and models safe to print: characters that control a terminal are escaped.
#ifndef INLAY_BASE_PRINTABLE_H_
#define INLAY_BASE_PRINTABLE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace inlay {

// `text` with every byte that is not UTF-8 as \xff, and every control character (C0 but for newline
// and tab, DEL, C1) and character that changes the direction of writing (U+202A to U+202E, U+2066
// to U+2069) as \u001b. In JSON written by nlohmann::json, such characters occur only inside
// strings, where \u001b is JSON's own escape, so the value stays the same.
std::string Printable(absl::string_view text);

// The same for a name on a line of its own: newline, carriage return, tab and backslash are escaped
// too (\n, \r, \t, \\), so that different names never look alike.
std::string PrintableName(absl::string_view name);

// `text` in single quotes for a message: escaped, and cut after 80 bytes.
std::string QuoteForMessage(absl::string_view text);

}  // namespace inlay

#endif  // INLAY_BASE_PRINTABLE_H_
