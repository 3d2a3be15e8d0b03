// How a chat that was rendered anew goes on from the tokens that were computed before.
#ifndef INLAY_GEMMA_LIKE_CHAT_CONTINUE_CHAT_H_
#define INLAY_GEMMA_LIKE_CHAT_CONTINUE_CHAT_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gemma_like/chat/chat.h"
#include "gemma_like/chat/chat_renderer.h"
#include "io/template/text.h"

namespace inlay {

// `whole` is the chat up to where the model answers, as `renderer` renders it; `conversation` the
// tokens so far. `said` is the text that these stand for, if they end with an answer (without its
// end-of-generation token): the prompt of that answer as it was rendered, and the answer as it was
// generated. Without it they may be any tokens.
//
// Where `whole` begins with `said`, all tokens are kept, as the model generated them, and what
// follows the answer is new. Otherwise they are kept as far as they are those of `whole`; at least
// one token follows in any case. InvalidArgument when the chat is empty, and errors of encoding.
absl::StatusOr<Continuation> ContinueChat(const ChatRenderer& renderer, const jinja::Text& whole,
                                          std::optional<absl::string_view> said,
                                          absl::Span<const int32_t> conversation);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_CHAT_CONTINUE_CHAT_H_
