#include "serve/api/request_json.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "base/out_of_memory.h"

namespace inlay::serve {
namespace {

constexpr size_t kEscapeSize = 6;  // "\ud83d"

// The code unit of the escape \uXXXX that begins at `at`; none where there is another text.
std::optional<uint32_t> EscapeAt(absl::string_view text, size_t at) {
  if (at + kEscapeSize > text.size() || text[at] != '\\' || text[at + 1] != 'u')
    return std::nullopt;
  const absl::string_view digits = text.substr(at + 2, kEscapeSize - 2);
  uint32_t unit = 0;
  const bool is_hex = std::all_of(digits.begin(), digits.end(),
                                  [](unsigned char c) { return absl::ascii_isxdigit(c); });
  if (!is_hex || !absl::SimpleHexAtoi(digits, &unit)) return std::nullopt;
  return unit;
}

bool IsHigh(std::optional<uint32_t> unit) { return unit >= 0xD800u && unit <= 0xDBFFu; }
bool IsLow(std::optional<uint32_t> unit) { return unit >= 0xDC00u && unit <= 0xDFFFu; }

// The text with "\ufffd" for each half of a surrogate pair; none where there is no half. Bytes keep
// their places, so that errors name the right ones.
std::optional<std::string> ReplaceHalves(absl::string_view text) {
  std::optional<std::string> replaced;
  size_t at = text.find('\\');
  while (at != absl::string_view::npos) {
    const std::optional<uint32_t> unit = EscapeAt(text, at);
    size_t size = unit.has_value() ? kEscapeSize : 2;  // of "\\" and "\n"
    if (IsHigh(unit) && IsLow(EscapeAt(text, at + kEscapeSize))) {
      size += kEscapeSize;
    } else if (IsHigh(unit) || IsLow(unit)) {
      if (!replaced.has_value()) replaced = std::string(text);
      replaced->replace(at, kEscapeSize, "\\ufffd");
    }
    at = text.find('\\', at + size);
  }
  return replaced;
}

}  // namespace

absl::StatusOr<JsonDocument> ParseRequestJson(absl::string_view what, absl::string_view text) {
  return OrOutOfMemory("reading JSON", [&] {
    const std::optional<std::string> replaced = ReplaceHalves(text);
    return ParseJson(what, replaced.has_value() ? *replaced : text, kMostRequestValues);
  });
}

}  // namespace inlay::serve
