#include "gemma_like/chat/marker_tokens.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace inlay {

std::vector<int32_t> MarkerTokens(const Tokenizer& tokenizer, const AnswerFormat& format) {
  std::vector<absl::string_view> markers = {
      format.think_begin, format.think_end, format.text_begin, format.text_end,
      format.call_begin,  format.call_end,  format.quote};
  if (format.calls == CallSyntax::kNamedJson) {
    markers.push_back("[ARGS]");
    markers.push_back("[CALL_ID]");
  }
  std::vector<int32_t> tokens;
  for (int32_t id = 0; static_cast<size_t>(id) < tokenizer.size(); ++id) {
    if (!tokenizer.IsControl(id)) continue;
    const absl::string_view text = tokenizer.TokenText(id);
    const bool marks = std::any_of(markers.begin(), markers.end(), [&](absl::string_view marker) {
      return !text.empty() && absl::StrContains(marker, text);
    });
    if (marks) tokens.push_back(id);
  }
  return tokens;
}

}  // namespace inlay
