#include "gemma_like/chat/call_blocks.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gemma_like/chat/call_json.h"

namespace inlay {
namespace {

// A number of Python as JSON writes it, if it is one.
std::string JsonNumber(absl::string_view number) {
  std::string json;
  if (!absl::ConsumePrefix(&number, "+") && absl::ConsumePrefix(&number, "-")) json = "-";
  const auto is_digit = [&](size_t i) {
    return i < number.size() && absl::ascii_isdigit(number[i]);
  };
  for (size_t i = 0; i < number.size(); ++i) {
    const bool before = i > 0 && is_digit(i - 1), after = is_digit(i + 1);
    if (number[i] == '_' && before && after) continue;
    const bool point = number[i] == '.' && (before || after);
    if (point && !before) json += '0';
    json += number[i];
    if (point && !after) json += '0';
  }
  return json;
}

}  // namespace

void BlockCursor::SkipSpace() { rest_ = absl::StripLeadingAsciiWhitespace(rest_); }

bool BlockCursor::Skip(absl::string_view text) {
  SkipSpace();
  if (!absl::StartsWith(rest_, text)) return false;
  Advance(text.size());
  return true;
}

bool BlockCursor::TakeUntil(absl::string_view text, absl::string_view* before) {
  const size_t end = rest_.find(text);
  if (end == absl::string_view::npos) return false;
  *before = rest_.substr(0, end);
  Advance(end + text.size());
  return true;
}

absl::string_view BlockCursor::TakeBefore(absl::string_view bytes) {
  const absl::string_view before = rest_.substr(0, rest_.find_first_of(bytes));
  Advance(before.size());
  return before;
}

bool AppendWord(absl::string_view word, std::string* out) {
  if (word == "True") return out->append("true"), true;
  if (word == "False") return out->append("false"), true;
  if (word == "None") return out->append("null"), true;
  if (word == "true" || word == "false" || word == "null") return absl::StrAppend(out, word), true;
  const bool is_number =
      !word.empty() && (absl::ascii_isdigit(word[0]) || absl::StrContains("+-.", word[0]));
  return is_number && AppendJsonValue(JsonNumber(word), out);
}

}  // namespace inlay
