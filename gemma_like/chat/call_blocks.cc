#include "gemma_like/chat/call_blocks.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "gemma_like/chat/call_json.h"

namespace inlay {

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
  const bool is_literal = word == "true" || word == "false" || word == "null";
  const bool is_number = !word.empty() && (word[0] == '-' || absl::ascii_isdigit(word[0]));
  return (is_literal || is_number) && AppendJsonValue(word, out);
}

}  // namespace inlay
