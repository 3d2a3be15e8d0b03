#include "io/template/string_literal.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/utf8.h"

namespace inlay::jinja {
namespace {

// Appends the code point that `digits` hexadecimal digits after "\x" name.
absl::Status AppendHex(absl::string_view escape, size_t digits, std::string* out) {
  uint32_t value = 0;
  const absl::string_view number = escape.substr(2, digits);
  for (const char c : number) {
    if (!absl::ascii_isxdigit(c)) value = UINT32_MAX;
  }
  if (number.size() != digits || value == UINT32_MAX || !absl::SimpleHexAtoi(number, &value) ||
      value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) {
    return absl::InvalidArgumentError(absl::StrCat("the escape ",
                                                   QuoteForMessage(escape.substr(0, 2 + digits)),
                                                   " in a string names no character"));
  }
  AppendUtf8(static_cast<char32_t>(value), out);
  return absl::OkStatus();
}

// Appends the code point of up to three octal digits after the backslash and returns the bytes of
// the escape.
size_t AppendOctal(absl::string_view escape, std::string* out) {
  size_t size = 1;
  char32_t value = 0;
  while (size < 4 && size < escape.size() && escape[size] >= '0' && escape[size] < '8')
    value = value * 8 + static_cast<char32_t>(escape[size++] - '0');
  AppendUtf8(value, out);
  return size;
}

// Appends what the escape at the start of `text` stands for and returns its bytes.
absl::StatusOr<size_t> AppendEscape(absl::string_view text, std::string* out) {
  constexpr absl::string_view kLetters = "\\'\"abfnrtv";
  constexpr absl::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";
  if (text.size() < 2) {
    out->push_back('\\');
    return 1;
  }
  const char letter = text[1];
  if (letter == '\n') return 2;  // the line goes on
  if (const size_t at = kLetters.find(letter); at != absl::string_view::npos) {
    out->push_back(kMeanings[at]);
    return 2;
  }
  if (letter >= '0' && letter < '8') return AppendOctal(text, out);
  if (letter == 'N') return absl::UnimplementedError("escapes \\N{...} are not supported");
  const size_t digits = letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
  if (digits == 0) {
    out->push_back('\\');
    return 1;
  }
  INLAY_RETURN_IF_ERROR(AppendHex(text, digits, out));
  return 2 + digits;
}

}  // namespace

absl::StatusOr<std::string> UnescapeLiteral(absl::string_view literal) {
  std::string out;
  while (!literal.empty()) {
    const size_t plain = literal.find('\\');
    absl::StrAppend(&out, literal.substr(0, plain));
    if (plain == absl::string_view::npos) break;
    literal.remove_prefix(plain);
    INLAY_ASSIGN_OR_RETURN(const size_t size, AppendEscape(literal, &out));
    literal.remove_prefix(size);
  }
  return out;
}

}  // namespace inlay::jinja
