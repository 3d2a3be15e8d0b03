#include "gemma_like/grammar/json_spelling.h"

namespace inlay {
namespace {

enum Within : JsonSpellingReader::State {
  kBetween = JsonSpellingReader::kBetween,
  kEscape,     // after a backslash
  kU,          // after \u
  kU0,         // after \u0
  kU00,        // after \u00
  kU000,       // after \u000
  kU001,       // after \u001
  kLast,       // before the last byte of a UTF-8 character
  kLastTwo,    // before the last two, which may be any continuation bytes
  kLastThree,  // before the last three, which may be any continuation bytes
  kAfterE0,    // the next byte is limited: no overlong form,
  kAfterED,    // no surrogate,
  kAfterF0,    // no overlong form,
  kAfterF4,    // at most U+10FFFF
};

// The letter after the backslash that stands for a control character; 0: it is written as \u00xx.
char ShortEscape(uint8_t control) {
  switch (control) {
    case '\b':
      return 'b';
    case '\f':
      return 'f';
    case '\n':
      return 'n';
    case '\r':
      return 'r';
    case '\t':
      return 't';
    default:
      return 0;
  }
}

std::optional<JsonSpellingReader::State> If(bool condition, Within next) {
  if (!condition) return std::nullopt;
  return next;
}

std::optional<JsonSpellingReader::State> First(uint8_t byte) {
  if (byte == '\\') return kEscape;
  if (byte < 0x80) return If(byte >= 0x20 && byte != '"', kBetween);
  if (byte >= 0xC2 && byte <= 0xDF) return kLast;
  if (byte == 0xE0) return kAfterE0;
  if (byte == 0xED) return kAfterED;
  if (byte >= 0xE1 && byte <= 0xEF) return kLastTwo;
  if (byte == 0xF0) return kAfterF0;
  if (byte >= 0xF1 && byte <= 0xF3) return kLastThree;
  return If(byte == 0xF4, kAfterF4);
}

// The last digit of \u000x or \u001x, whose first part is `high`.
std::optional<JsonSpellingReader::State> LastDigit(uint8_t high, uint8_t byte) {
  const bool decimal = byte >= '0' && byte <= '9';
  if (!decimal && !(byte >= 'a' && byte <= 'f')) return std::nullopt;
  const uint8_t value = decimal ? byte - '0' : byte - 'a' + 10;
  return If(ShortEscape(high * 16 + value) == 0, kBetween);
}

std::optional<JsonSpellingReader::State> InEscape(uint8_t byte) {
  if (byte == 'u') return kU;
  const absl::string_view letters = "\"\\bfnrt";
  return If(letters.find(static_cast<char>(byte)) != absl::string_view::npos, kBetween);
}

}  // namespace

std::string JsonSpelling(absl::string_view text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string spelling = "\"";
  for (const char c : text) {
    const uint8_t byte = static_cast<uint8_t>(c);
    if (c == '"' || c == '\\') {
      spelling += {'\\', c};
    } else if (byte >= 0x20) {
      spelling += c;
    } else if (const char letter = ShortEscape(byte)) {
      spelling += {'\\', letter};
    } else {
      spelling += {'\\', 'u', '0', '0', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return spelling + '"';
}

std::optional<JsonSpellingReader::State> JsonSpellingReader::Next(State state, uint8_t byte) {
  const bool continuation = byte >= 0x80 && byte <= 0xBF;
  switch (state) {
    case kBetween:
      return First(byte);
    case kEscape:
      return InEscape(byte);
    case kU:
      return If(byte == '0', kU0);
    case kU0:
      return If(byte == '0', kU00);
    case kU00:
      return byte == '1' ? If(true, kU001) : If(byte == '0', kU000);
    case kU000:
      return LastDigit(0, byte);
    case kU001:
      return LastDigit(1, byte);
    case kLast:
      return If(continuation, Within::kBetween);
    case kLastTwo:
      return If(continuation, kLast);
    case kLastThree:
      return If(continuation, kLastTwo);
    case kAfterE0:
      return If(continuation && byte >= 0xA0, kLast);
    case kAfterED:
      return If(continuation && byte <= 0x9F, kLast);
    case kAfterF0:
      return If(continuation && byte >= 0x90, kLastTwo);
    default:
      return If(continuation && byte <= 0x8F, kLastTwo);
  }
}

}  // namespace inlay
