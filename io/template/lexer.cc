#include "io/template/lexer.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "io/template/limits.h"
#include "io/template/string_literal.h"
#include "io/template/unicode_text.h"

namespace inlay::jinja {
namespace {

// Longer ones first, so that "**" is not read as two "*".
constexpr absl::string_view kOperators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                            "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                            ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};

bool IsNameByte(char c) { return absl::ascii_isalnum(c) || c == '_' || (c & 0x80) != 0; }

// The bytes of "0" or "1_000" at the start of `text`.
size_t DigitsSize(absl::string_view text) {
  size_t at = 0;
  while (at < text.size() && (absl::ascii_isdigit(text[at]) ||
                              (text[at] == '_' && at > 0 && at + 1 < text.size() &&
                               text[at - 1] != '_' && absl::ascii_isdigit(text[at + 1])))) {
    ++at;
  }
  return at;
}

// The bytes of the floating-point number at the start of `text`; 0 when there is none.
size_t FloatSize(absl::string_view text) {
  size_t at = DigitsSize(text);
  if (at == 0) return 0;
  bool is_float = false;
  if (at < text.size() && text[at] == '.') {
    const size_t fraction = DigitsSize(text.substr(at + 1));
    if (fraction > 0) at += 1 + fraction;
    is_float = fraction > 0;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    size_t exponent = at + 1;
    if (exponent < text.size() && (text[exponent] == '+' || text[exponent] == '-')) ++exponent;
    const size_t digits = DigitsSize(text.substr(exponent));
    if (digits > 0) return exponent + digits;
  }
  return is_float ? at : 0;
}

// The base and the prefix of the integer at the start of `text`.
int IntegerBase(absl::string_view text) {
  if (text.size() < 3 || text[0] != '0') return 10;
  constexpr std::array<std::pair<char, int>, 3> kBases = {{{'b', 2}, {'o', 8}, {'x', 16}}};
  for (const auto& [letter, base] : kBases) {
    const bool spaced = text[2] == '_' && text.size() > 3;
    const char digit = absl::ascii_tolower(text[spaced ? 3 : 2]);
    const int value = absl::ascii_isdigit(digit) ? digit - '0' : digit - 'a' + 10;
    if (absl::ascii_tolower(text[1]) == letter && absl::ascii_isxdigit(digit) && value < base)
      return base;
  }
  return 10;
}

// The bytes of the integer at the start of `text`, which starts with a digit.
size_t IntegerSize(absl::string_view text) {
  const int base = IntegerBase(text);
  if (base == 10) {
    if (text[0] != '0') return DigitsSize(text);
    size_t zeros = 1;  // "007" is the numbers 00 and 7
    while (zeros < text.size() && text[zeros] == '0') ++zeros;
    return zeros;
  }
  size_t at = 2;
  while (at < text.size() && (absl::ascii_isxdigit(text[at]) || text[at] == '_')) ++at;
  return at;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  absl::StatusOr<std::vector<Token>> Run() {
    while (pos_ < source_.size()) INLAY_RETURN_IF_ERROR(LexRoot());
    Add(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  enum class Tag { kVariable, kBlock, kComment, kRaw };

  absl::string_view Rest() const { return absl::string_view(source_).substr(pos_); }

  void Add(TokenKind kind, absl::string_view text) {
    tokens_.push_back({.kind = kind, .line = line_, .text = std::string(text)});
  }

  void Advance(size_t bytes) {
    const auto begin = source_.begin() + static_cast<ptrdiff_t>(pos_);
    line_ += static_cast<int>(std::count(begin, begin + static_cast<ptrdiff_t>(bytes), '\n'));
    pos_ += bytes;
  }

  // Data up to the next tag, and the tag.
  absl::Status LexRoot() {
    size_t start = pos_;
    do {
      start = source_.find('{', start);
      if (start == std::string::npos || start + 1 >= source_.size()) {
        Add(TokenKind::kData, Rest());
        Advance(source_.size() - pos_);
        return absl::OkStatus();
      }
      ++start;
    } while (source_[start] != '%' && source_[start] != '{' && source_[start] != '#');
    --start;
    const absl::string_view tag = absl::string_view(source_).substr(start);
    const size_t raw = RawBeginSize(tag);
    const Tag kind = raw > 0         ? Tag::kRaw
                     : tag[1] == '{' ? Tag::kVariable
                     : tag[1] == '%' ? Tag::kBlock
                                     : Tag::kComment;
    const char sign = tag.size() > 2 && (tag[2] == '-' || tag[2] == '+') ? tag[2] : '\0';
    AddData(start - pos_, sign, kind != Tag::kVariable);
    if (kind == Tag::kRaw) {
      AdvanceOverTagEnd(raw);
      return LexRaw();
    }
    Advance(sign == '\0' ? 2 : 3);
    if (kind == Tag::kComment) return LexComment();
    return LexTag(kind == Tag::kVariable);
  }

  // Adds the next `size` bytes as data, without the white space at their end that the tag after
  // them takes away.
  void AddData(size_t size, char sign, bool strips_line) {
    absl::string_view data = Rest().substr(0, size);
    if (sign == '-') {
      data.remove_suffix(TrailingSpace(data));
    } else if (sign != '+' && strips_line) {
      const size_t newline = data.rfind('\n');
      const size_t line = newline == absl::string_view::npos ? 0 : newline + 1;
      const absl::string_view last = data.substr(line);
      if ((line > 0 || line_starting_) && LeadingSpace(last) == last.size())
        data = data.substr(0, line);
    }
    if (!data.empty()) Add(TokenKind::kData, data);
    Advance(size);
  }

  // Goes on after a tag's end.
  void AdvanceOverTagEnd(size_t size) {
    Advance(size);
    line_starting_ = source_[pos_ - 1] == '\n';
  }

  // The bytes of a tag's end (`close`, with its sign and the white space that it takes away) at the
  // start of `text`; 0 when it is not there.
  static size_t TagEndSize(absl::string_view text, absl::string_view close, bool block) {
    if (absl::StartsWith(text, close)) {
      const size_t size = close.size();
      return block && text.size() > size && text[size] == '\n' ? size + 1 : size;
    }
    if (text.empty() || !absl::StartsWith(text.substr(1), close)) return 0;
    const size_t size = 1 + close.size();
    if (text[0] == '-') return size + LeadingSpace(text.substr(size));
    return text[0] == '+' && block ? size : 0;
  }

  // The bytes of {% raw %} at the start of `text`; 0 when it is something else. A newline after it
  // stays.
  static size_t RawBeginSize(absl::string_view text) {
    const size_t name = RawNameEnd(text, "raw");
    if (name == 0) return 0;
    const size_t end = TagEndSize(text.substr(name), "%}", /*block=*/false);
    return end == 0 ? 0 : name + end;
  }

  // Where the name ends in "{% name "; 0 when something else is there.
  static size_t RawNameEnd(absl::string_view text, absl::string_view name) {
    if (!absl::StartsWith(text, "{%")) return 0;
    size_t at = text.size() > 2 && (text[2] == '-' || text[2] == '+') ? 3 : 2;
    at += LeadingSpace(text.substr(at));
    if (!absl::StartsWith(text.substr(at), name)) return 0;
    at += name.size();
    return at + LeadingSpace(text.substr(at));
  }

  absl::Status LexRaw() {
    const absl::string_view rest = Rest();
    for (size_t at = rest.find("{%"); at != absl::string_view::npos; at = rest.find("{%", at + 1)) {
      const absl::string_view tag = rest.substr(at);
      const size_t name = RawNameEnd(tag, "endraw");
      const size_t end = name == 0 ? 0 : TagEndSize(tag.substr(name), "%}", /*block=*/true);
      if (end == 0) continue;
      AddData(at, tag[2], /*strips_line=*/true);
      AdvanceOverTagEnd(name + end);
      return absl::OkStatus();
    }
    return SyntaxError(line_, "this raw block has no {% endraw %}");
  }

  absl::Status LexComment() {
    const absl::string_view rest = Rest();
    size_t at = rest.find("#}");
    if (at == absl::string_view::npos) return SyntaxError(line_, "this comment has no #}");
    if (at > 0 && (rest[at - 1] == '-' || rest[at - 1] == '+')) --at;
    AdvanceOverTagEnd(at + TagEndSize(rest.substr(at), "#}", /*block=*/true));
    return absl::OkStatus();
  }

  absl::Status LexTag(bool variable) {
    Add(variable ? TokenKind::kVariableBegin : TokenKind::kBlockBegin, "");
    brackets_.clear();
    while (true) {
      if (brackets_.empty()) {
        const size_t end = TagEndSize(Rest(), variable ? "}}" : "%}", !variable);
        if (end > 0) {
          Add(variable ? TokenKind::kVariableEnd : TokenKind::kBlockEnd, "");
          AdvanceOverTagEnd(end);
          return absl::OkStatus();
        }
      }
      const size_t space = LeadingSpace(Rest());
      Advance(space);
      if (pos_ == source_.size()) return SyntaxError(line_, "the template ends within a tag");
      if (space == 0) INLAY_RETURN_IF_ERROR(LexToken());
    }
  }

  absl::Status LexToken() {
    const absl::string_view rest = Rest();
    const char c = rest[0];
    if (absl::ascii_isdigit(c)) return LexNumber();
    if (c == '"' || c == '\'') return LexString();
    if (IsNameByte(c)) {
      size_t size = 1;
      while (size < rest.size() && IsNameByte(rest[size])) ++size;
      const absl::string_view name = rest.substr(0, size);
      if (std::any_of(name.begin(), name.end(), [](char b) { return (b & 0x80) != 0; }))
        return UnsupportedError(line_, absl::StrCat("the name ", QuoteForMessage(name),
                                                    " has other letters than a to z"));
      Add(TokenKind::kName, name);
      Advance(size);
      return absl::OkStatus();
    }
    for (const absl::string_view op : kOperators) {
      if (!absl::StartsWith(rest, op)) continue;
      INLAY_RETURN_IF_ERROR(Balance(op[0]));
      Add(TokenKind::kOperator, op);
      Advance(op.size());
      return absl::OkStatus();
    }
    return SyntaxError(line_, absl::StrCat("a tag cannot hold the character ",
                                           QuoteForMessage(rest.substr(0, 1))));
  }

  absl::Status Balance(char bracket) {
    constexpr absl::string_view kOpen = "([{", kClose = ")]}";
    if (const size_t open = kOpen.find(bracket); open != absl::string_view::npos) {
      brackets_.push_back(kClose[open]);
    } else if (kClose.find(bracket) != absl::string_view::npos) {
      if (brackets_.empty() || brackets_.back() != bracket)
        return SyntaxError(line_, absl::StrCat("the bracket ", absl::string_view(&bracket, 1),
                                               " closes none that is open"));
      brackets_.pop_back();
    }
    return absl::OkStatus();
  }

  absl::Status LexNumber() {
    const absl::string_view rest = Rest();
    const bool after_dot = source_[pos_ - 1] == '.';
    const size_t float_size = after_dot ? 0 : FloatSize(rest);
    const size_t size = float_size > 0 ? float_size : IntegerSize(rest);
    const std::string digits = absl::StrReplaceAll(rest.substr(0, size), {{"_", ""}});
    Token token = {.kind = TokenKind::kInteger, .line = line_, .text = digits};
    if (float_size > 0) {
      token.kind = TokenKind::kFloat;
      if (!absl::SimpleAtod(digits, &token.number))
        return SyntaxError(line_, absl::StrCat(QuoteForMessage(digits), " is not a number"));
    } else if (!ParseInteger(digits, &token.integer)) {
      return UnsupportedError(
          line_, absl::StrCat("the integer ", QuoteForMessage(digits), " needs more than 64 bits"));
    }
    tokens_.push_back(std::move(token));
    Advance(size);
    return absl::OkStatus();
  }

  static bool ParseInteger(const std::string& digits, int64_t* value) {
    switch (IntegerBase(digits)) {
      case 16:
        return absl::SimpleHexAtoi(digits, value);
      case 10:
        return absl::SimpleAtoi(digits, value);
      default: {
        const int shift = IntegerBase(digits) == 8 ? 3 : 1;
        uint64_t sum = 0;
        for (const char c : absl::string_view(digits).substr(2)) {
          if (sum >> (63 - shift) != 0 || c < '0' || c - '0' >= 1 << shift) return false;
          sum = sum << shift | static_cast<uint64_t>(c - '0');
        }
        *value = static_cast<int64_t>(sum);
        return true;
      }
    }
  }

  absl::Status LexString() {
    const absl::string_view rest = Rest();
    size_t end = 1;
    while (end < rest.size() && rest[end] != rest[0]) end += rest[end] == '\\' ? 2 : 1;
    if (end >= rest.size()) return SyntaxError(line_, "this string has no end");
    const auto text = UnescapeLiteral(rest.substr(1, end - 1));
    if (!text.ok()) return ErrorAtLine(text.status().code(), line_, text.status().message());
    Add(TokenKind::kString, *text);
    Advance(end + 1);
    return absl::OkStatus();
  }

  const std::string source_;
  size_t pos_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // whether nothing but a newline is between pos_ and the tag before
  std::string brackets_;       // that close the open ones of the current tag
  std::vector<Token> tokens_;
};

}  // namespace

absl::Status ErrorAtLine(absl::StatusCode code, int line, absl::string_view what) {
  return absl::Status(code, absl::StrCat("line ", line, " of the template: ", what));
}

absl::StatusOr<std::vector<Token>> Tokenize(absl::string_view source) {
  if (source.size() > kMaxTemplateBytes)
    return absl::InvalidArgumentError(absl::StrCat(
        "the template has ", source.size(), " bytes, which is more than ", kMaxTemplateBytes));
  if (!IsValidUtf8(source)) return absl::InvalidArgumentError("the template is not UTF-8");
  std::string text = absl::StrReplaceAll(source, {{"\r\n", "\n"}, {"\r", "\n"}});
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return Lexer(std::move(text)).Run();
}

}  // namespace inlay::jinja
