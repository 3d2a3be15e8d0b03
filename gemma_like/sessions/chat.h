// Chat templates: turns in the form that a family's models were trained on.
#ifndef INLAY_GEMMA_LIKE_SESSIONS_CHAT_H_
#define INLAY_GEMMA_LIKE_SESSIONS_CHAT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "configs/config.h"
#include "io/tokenizer/tokenizer.h"

namespace inlay {

// Converts texts into the tokens between one answer and the next. The template's own text may
// contain control tokens; the texts of users stay plain text, "<end_of_turn>" included.
//   kGemma    https://ai.google.dev/gemma/docs/core/prompt-structure
//   kGranite  https://www.ibm.com/granite/docs/use-cases/prompt-engineering
//   kChatMl   the roles' names between <|im_start|> and <|im_end|>
//   kNone     no roles: each turn is a line, which the model continues
class ChatFormat {
 public:
  // `tokenizer` must outlive the object. InvalidArgument when its vocabulary lacks a control token
  // of the template.
  static absl::StatusOr<ChatFormat> Create(const Tokenizer& tokenizer, ChatTemplate chat_template);

  // The start of a conversation, up to where the model answers. `system` may be empty; if the
  // template has no system role, it precedes the user's text.
  absl::StatusOr<std::vector<int32_t>> FirstTurn(absl::string_view system,
                                                 absl::string_view user) const;

  // The tokens after `conversation`, which ends with an answer (without its end-of-generation
  // token): the end of that turn and the user's next turn, up to where the model answers.
  absl::StatusOr<std::vector<int32_t>> NextTurn(absl::Span<const int32_t> conversation,
                                                absl::string_view user) const;

 private:
  struct Markup;
  ChatFormat(const Tokenizer& tokenizer, const Markup& markup)
      : tokenizer_(&tokenizer), markup_(&markup) {}

  static const Markup& MarkupOf(ChatTemplate chat_template);
  absl::Status AppendUser(absl::string_view user, std::vector<int32_t>& tokens) const;

  const Tokenizer* tokenizer_;
  const Markup* markup_;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_SESSIONS_CHAT_H_
