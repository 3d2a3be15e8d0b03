#include "base/utf8.h"

#include <algorithm>

namespace inlay {
namespace {

// What may follow a lead byte: `length` bytes in all (0: no lead byte), the second one in [low,
// high], the others in [0x80, 0xBF]. The narrower ranges of second bytes exclude overlong forms,
// surrogates and values beyond U+10FFFF.
struct Lead {
  uint32_t length;
  uint8_t low;
  uint8_t high;
};

Lead LeadOf(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

CodePoint DecodeUtf8(absl::string_view text) {
  const uint8_t first = static_cast<uint8_t>(text[0]);
  if (first < 0x80) return {first, 1, true};
  const Lead lead = LeadOf(first);
  if (lead.length == 0) return {};
  char32_t value = first & (0x7Fu >> lead.length);
  for (uint32_t i = 1; i < lead.length; ++i) {
    if (i == text.size()) return {kReplacementCharacter, i, false};
    const uint8_t byte = static_cast<uint8_t>(text[i]);
    const bool fits = i == 1 ? byte >= lead.low && byte <= lead.high : (byte & 0xC0) == 0x80;
    if (!fits) return {kReplacementCharacter, i, false};
    value = (value << 6) | (byte & 0x3Fu);
  }
  return {value, lead.length, true};
}

bool IsValidUtf8(absl::string_view text) {
  while (!text.empty()) {
    const CodePoint c = DecodeUtf8(text);
    if (!c.valid) return false;
    text.remove_prefix(c.length);
  }
  return true;
}

size_t IncompleteUtf8Tail(absl::string_view text) {
  for (size_t n = std::min<size_t>(3, text.size()); n > 0; --n) {
    const absl::string_view tail = text.substr(text.size() - n);
    // Ill-formed, yet all of it is the prefix of a sequence that needs more bytes.
    const CodePoint c = DecodeUtf8(tail);
    if (!c.valid && c.length == n && LeadOf(static_cast<uint8_t>(tail[0])).length > n) return n;
  }
  return 0;
}

void AppendUtf8(char32_t c, std::string* out) {
  if (c < 0x80) {
    out->push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out->push_back(static_cast<char>(0xC0 | (c >> 6)));
    out->push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else if (c < 0x10000) {
    out->push_back(static_cast<char>(0xE0 | (c >> 12)));
    out->push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else {
    out->push_back(static_cast<char>(0xF0 | (c >> 18)));
    out->push_back(static_cast<char>(0x80 | ((c >> 12) & 0x3F)));
    out->push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (c & 0x3F)));
  }
}

}  // namespace inlay
