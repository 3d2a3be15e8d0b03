#include "gemma_like/chat/continue_chat.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "base/status_macros.h"

namespace inlay {

absl::StatusOr<Continuation> ContinueChat(const ChatRenderer& renderer, const jinja::Text& whole,
                                          std::optional<absl::string_view> said,
                                          absl::Span<const int32_t> conversation) {
  if (whole.empty()) return absl::InvalidArgumentError("the chat template writes nothing");
  INLAY_ASSIGN_OR_RETURN(std::vector<int32_t> tokens, renderer.Encode(whole));
  if (said.has_value() && absl::StartsWith(whole.bytes(), *said)) {
    INLAY_ASSIGN_OR_RETURN(const std::vector<int32_t> head,
                           renderer.Encode(whole.Part(0, said->size())));
    // Where the answer's last word does not run on in what follows, the tokens after it are the
    // same whatever tokens the answer has.
    if (head.size() < tokens.size() && std::equal(head.begin(), head.end(), tokens.begin())) {
      tokens.erase(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(head.size()));
      return Continuation{.keep = conversation.size(), .tokens = std::move(tokens)};
    }
  }
  const size_t most = std::min(conversation.size(), tokens.size() - 1);
  const auto [end, unused] = std::mismatch(
      conversation.begin(), conversation.begin() + static_cast<ptrdiff_t>(most), tokens.begin());
  const size_t keep = static_cast<size_t>(end - conversation.begin());
  tokens.erase(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(keep));
  return Continuation{.keep = keep, .tokens = std::move(tokens)};
}

}  // namespace inlay
