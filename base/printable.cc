#include "base/printable.h"

#include "absl/strings/str_cat.h"
#include "base/utf8.h"

namespace inlay {
namespace {

bool ControlsTerminal(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x202A && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069);
}

// Appends `digits` hexadecimal digits of `x` after a backslash and `letter`.
void AppendEscape(char letter, int digits, uint32_t x, std::string* out) {
  out->push_back('\\');
  out->push_back(letter);
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4)
    out->push_back("0123456789abcdef"[(x >> shift) & 0xF]);
}

// The letter that follows the backslash when `c` is escaped in a name; 0: none.
char ShortEscape(char32_t c) {
  switch (c) {
    case '\n':
      return 'n';
    case '\r':
      return 'r';
    case '\t':
      return 't';
    case '\\':
      return '\\';
    default:
      return 0;
  }
}

std::string Escaped(absl::string_view text, bool is_name) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint c = DecodeUtf8(text);
    const absl::string_view bytes = text.substr(0, c.length);
    text.remove_prefix(c.length);
    const char letter = ShortEscape(c.value);
    if (!c.valid) {
      for (const char byte : bytes) AppendEscape('x', 2, static_cast<uint8_t>(byte), &out);
    } else if (is_name && letter != 0) {
      out.push_back('\\');
      out.push_back(letter);
    } else if (ControlsTerminal(c.value) && c.value != '\n' && c.value != '\t') {
      AppendEscape('u', 4, c.value, &out);
    } else {
      out.append(bytes.data(), bytes.size());
    }
  }
  return out;
}

}  // namespace

std::string Printable(absl::string_view text) { return Escaped(text, /*is_name=*/false); }

std::string PrintableName(absl::string_view name) { return Escaped(name, /*is_name=*/true); }

std::string QuoteForMessage(absl::string_view text) {
  constexpr size_t kLongest = 80;
  if (text.size() <= kLongest) return absl::StrCat("'", PrintableName(text), "'");
  absl::string_view start = text.substr(0, kLongest);
  start.remove_suffix(IncompleteUtf8Tail(start));
  return absl::StrCat("'", PrintableName(start), "...'");
}

}  // namespace inlay
