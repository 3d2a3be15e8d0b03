// Conversations of turns, written as the family's models were trained to read them.
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

// Turns texts into the tokens that stand between one answer and the next. What the template itself
// says may hold control tokens; what people say stays plain text, "<end_of_turn>" included.
//   kGemma    https://ai.google.dev/gemma/docs/core/prompt-structure
//   kGranite  https://www.ibm.com/granite/docs/use-cases/prompt-engineering
//   kChatMl   the roles' names between <|im_start|> and <|im_end|>
//   kNone     no roles: each turn is a line, and the model goes on from it
class ChatFormat {
 public:
  // `tokenizer` must outlive the object. InvalidArgument when its vocabulary lacks a control token
  // of the template.
  static absl::StatusOr<ChatFormat> Create(const Tokenizer& tokenizer, ChatTemplate chat_template);

  // The beginning of a conversation, up to where the model answers. `system` may be empty; where a
  // template has no such role it precedes what the user says.
  absl::StatusOr<std::vector<int32_t>> FirstTurn(absl::string_view system,
                                                 absl::string_view user) const;

  // What follows after the tokens so far, which end with an answer (without the token that ended
  // it): the end of that and another turn of the user, up to where the model answers.
  absl::StatusOr<std::vector<int32_t>> NextTurn(absl::Span<const int32_t> conversation,
                                                absl::string_view user) const;

 private:
  struct Parts;
  ChatFormat(const Tokenizer& tokenizer, const Parts& parts)
      : tokenizer_(&tokenizer), parts_(&parts) {}

  static const Parts& PartsOf(ChatTemplate chat_template);
  absl::Status AppendUser(absl::string_view user, std::vector<int32_t>& tokens) const;

  const Tokenizer* tokenizer_;
  const Parts* parts_;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_SESSIONS_CHAT_H_
