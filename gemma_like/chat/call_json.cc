#include "gemma_like/chat/call_json.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/utf8.h"

namespace inlay {
namespace {

bool IsJsonSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

void AppendEscaped(uint8_t control, std::string* out) {
  switch (control) {
    case '\n':
      *out += "\\n";
      return;
    case '\r':
      *out += "\\r";
      return;
    case '\t':
      *out += "\\t";
      return;
    default:
      absl::StrAppend(out, "\\u", absl::Hex(control, absl::kZeroPad4));
  }
}

}  // namespace

JsonScanner::State JsonScanner::Push(char c, std::string* out) {
  if (expect_ == Expect::kString) return InString(c, out);
  if (expect_ == Expect::kEscape) return InEscape(c, out);
  if (expect_ == Expect::kHex) return InHex(c, out);
  State state = State::kRefused;
  if (expect_ == Expect::kNumber) {
    state = InNumber(c);
    if (state == State::kEndedBefore) return state;
    // The number ended, and the list or object that it is in goes on.
    if (state == State::kEnded) state = Push(c, nullptr);
  } else if (expect_ == Expect::kLiteral) {
    if (*literal_ != c) return State::kRefused;
    ++literal_;
    state = *literal_ == '\0' ? EndValue() : State::kMore;
  } else if (IsJsonSpace(c)) {
    state = closing_.empty() ? State::kRefused : State::kMore;
  } else {
    state = BeginValue(c);
  }
  if (state != State::kRefused && out != nullptr) out->push_back(c);
  return state;
}

// And what stands between values.
JsonScanner::State JsonScanner::BeginValue(char c) {
  switch (expect_) {
    case Expect::kColon:
      if (c != ':') return State::kRefused;
      expect_ = Expect::kValue;
      return State::kMore;
    case Expect::kCommaOrEnd:
      if (c != ',') return Close(c);
      expect_ = closing_.back() == '}' ? Expect::kKey : Expect::kValue;
      return State::kMore;
    case Expect::kKey:
    case Expect::kKeyOrEnd:
      if (c != '"') return expect_ == Expect::kKeyOrEnd ? Close(c) : State::kRefused;
      in_key_ = true;
      expect_ = Expect::kString;
      return State::kMore;
    default:
      break;
  }
  if (c == ']' && expect_ == Expect::kValueOrEnd) return Close(c);
  if (c == '{') return Open('}');
  if (c == '[') return Open(']');
  expect_ = Expect::kLiteral;
  if (c == 't') return literal_ = "rue", State::kMore;
  if (c == 'f') return literal_ = "alse", State::kMore;
  if (c == 'n') return literal_ = "ull", State::kMore;
  expect_ = Expect::kString;
  if (c == '"') return State::kMore;
  expect_ = Expect::kNumber;
  if (c != '-' && !absl::ascii_isdigit(c)) return State::kRefused;
  number_ = c == '-' ? Number::kMinus : c == '0' ? Number::kZero : Number::kInteger;
  return State::kMore;
}

JsonScanner::State JsonScanner::Open(char closing) {
  if (closing_.size() == kMostDepth) return State::kRefused;
  closing_.push_back(closing);
  expect_ = closing == '}' ? Expect::kKeyOrEnd : Expect::kValueOrEnd;
  return State::kMore;
}

JsonScanner::State JsonScanner::Close(char c) {
  if (closing_.empty() || closing_.back() != c) return State::kRefused;
  closing_.pop_back();
  return EndValue();
}

JsonScanner::State JsonScanner::EndValue() {
  if (closing_.empty()) return State::kEnded;
  expect_ = Expect::kCommaOrEnd;
  return State::kMore;
}

JsonScanner::State JsonScanner::InString(char c, std::string* out) {
  const auto byte = static_cast<uint8_t>(c);
  if (after_high_surrogate_ && c != '\\') return State::kRefused;
  if (byte < 0x20) {
    if (out != nullptr) AppendEscaped(byte, out);
    return State::kMore;
  }
  if (c == '\\') {
    expect_ = Expect::kEscape;
    escape_ = c;
    return State::kMore;
  }
  if (out != nullptr) out->push_back(c);
  if (c != '"') return State::kMore;
  if (!in_key_) return EndValue();
  in_key_ = false;
  expect_ = Expect::kColon;
  return State::kMore;
}

JsonScanner::State JsonScanner::InEscape(char c, std::string* out) {
  if (c == 'u') {
    expect_ = Expect::kHex;
    escape_.push_back(c);
    code_unit_ = 0;
    return State::kMore;
  }
  constexpr absl::string_view kEscapes = "\"\\/bfnrt";
  if (kEscapes.find(c) == absl::string_view::npos) return TakeAsNoEscape(c, out);
  if (after_high_surrogate_) return State::kRefused;
  escape_.push_back(c);
  return EndEscape(out);
}

JsonScanner::State JsonScanner::InHex(char c, std::string* out) {
  if (!absl::ascii_isxdigit(c)) return TakeAsNoEscape(c, out);
  constexpr size_t kWhole = 6;  // a backslash, u and four digits
  escape_.push_back(c);
  const char lower = absl::ascii_tolower(c);
  code_unit_ =
      code_unit_ << 4 | static_cast<uint32_t>(lower <= '9' ? lower - '0' : lower - 'a' + 10);
  if (escape_.size() < kWhole) return State::kMore;
  const bool high = code_unit_ >= 0xD800 && code_unit_ < 0xDC00;
  const bool low = code_unit_ >= 0xDC00 && code_unit_ < 0xE000;
  if (low != after_high_surrogate_) return State::kRefused;
  after_high_surrogate_ = high;
  return EndEscape(out);
}

JsonScanner::State JsonScanner::EndEscape(std::string* out) {
  expect_ = Expect::kString;
  if (out != nullptr) *out += escape_;
  return State::kMore;
}

// The escape so far and this byte are text as they are.
JsonScanner::State JsonScanner::TakeAsNoEscape(char c, std::string* out) {
  if (after_high_surrogate_) return State::kRefused;
  expect_ = Expect::kString;
  if (out != nullptr) absl::StrAppend(out, "\\", escape_);
  return InString(c, out);
}

// kEnded: before this byte, within a list or object.
JsonScanner::State JsonScanner::InNumber(char c) {
  const bool digit = absl::ascii_isdigit(c);
  const auto go = [&](Number next) {
    number_ = next;
    return State::kMore;
  };
  switch (number_) {
    case Number::kMinus:
      if (!digit) return State::kRefused;
      return go(c == '0' ? Number::kZero : Number::kInteger);
    case Number::kPoint:
      return digit ? go(Number::kFraction) : State::kRefused;
    case Number::kE:
      if (c == '+' || c == '-') return go(Number::kESign);
      [[fallthrough]];
    case Number::kESign:
      return digit ? go(Number::kExponent) : State::kRefused;
    default:
      break;
  }
  if (digit) return number_ == Number::kZero ? State::kRefused : State::kMore;
  const bool whole = number_ == Number::kZero || number_ == Number::kInteger;
  if (c == '.' && whole) return go(Number::kPoint);
  if ((c == 'e' || c == 'E') && number_ != Number::kExponent) return go(Number::kE);
  if (closing_.empty()) return State::kEndedBefore;
  EndValue();
  return State::kEnded;
}

bool AppendJsonValue(absl::string_view text, std::string* out) {
  text = absl::StripAsciiWhitespace(text);
  const size_t size = out->size();
  JsonScanner scanner;
  JsonScanner::State state = JsonScanner::State::kMore;
  for (size_t i = 0; i < text.size(); ++i) {
    state = scanner.Push(text[i], out);
    if (state == JsonScanner::State::kEnded && i + 1 == text.size()) return true;
    if (state != JsonScanner::State::kMore) break;
  }
  // A number ends where something else begins.
  if (state == JsonScanner::State::kMore && !text.empty() &&
      scanner.Push(' ', nullptr) == JsonScanner::State::kEndedBefore) {
    return true;
  }
  out->resize(size);
  return false;
}

void AppendJsonString(absl::string_view text, std::string* out) {
  out->push_back('"');
  while (!text.empty()) {
    const CodePoint point = DecodeUtf8(text);
    const auto byte = static_cast<uint8_t>(text[0]);
    if (byte < 0x20) {
      AppendEscaped(byte, out);
    } else {
      if (byte == '"' || byte == '\\') out->push_back('\\');
      AppendUtf8(point.value, out);
    }
    text.remove_prefix(point.length);
  }
  out->push_back('"');
}

std::string* JsonMembers::Add(const std::string& key) {
  const auto [place, is_new] = places_.try_emplace(key, members_.size());
  if (is_new) members_.push_back({.key = key, .value = ""});
  std::string& value = members_[place->second].value;
  value.clear();
  return &value;
}

void JsonMembers::AppendTo(std::string* out) const {
  absl::string_view separator = "{";
  for (const auto& [key, value] : members_) {
    absl::StrAppend(out, separator, key, ": ", value);
    separator = ", ";
  }
  *out += members_.empty() ? "{}" : "}";
}

}  // namespace inlay
