// Chats as tokens: turns in the form that a family's models were trained on.
#ifndef INLAY_GEMMA_LIKE_CHAT_CHAT_H_
#define INLAY_GEMMA_LIKE_CHAT_CHAT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "configs/config.h"
#include "gemma_like/chat/answer_format.h"
#include "gemma_like/chat/answer_parser.h"
#include "io/tokenizer/tokenizer.h"

namespace inlay {

// One message of the user and its answer.
struct Exchange {
  std::string user;
  std::optional<std::string> answer;  // none where it is not known
};

// What was said so far.
struct ChatTexts {
  absl::string_view system;  // may be empty
  absl::Span<const Exchange> before;
  absl::string_view user;  // the message to be answered
};

// How a conversation goes on: it keeps this many tokens, after which these follow.
struct Continuation {
  size_t keep;
  std::vector<int32_t> tokens;
  bool in_thinking = false;  // they leave the model amid its thoughts
};

// How messages become tokens. Control tokens come from the format alone: the texts of users stay
// plain text, "<end_of_turn>" included. Safe to call from several threads.
class ChatFormat {
 public:
  virtual ~ChatFormat() = default;

  // The tokens up to where the model answers `texts.user`. `conversation` is what a cache holds of
  // the chat. `ends_with_answer`: it ends with the last answer before, without its
  // end-of-generation token; otherwise it may be any beginning of the chat.
  virtual absl::StatusOr<Continuation> Next(const ChatTexts& texts,
                                            absl::Span<const int32_t> conversation,
                                            bool ends_with_answer) const = 0;

  // Differs between formats that write the same messages differently: those of other templates, or
  // of the same one with other tools or variables.
  virtual uint64_t fingerprint() const = 0;

  // How answers have their parts; MarkerTokens are to be in their texts. By default all is text.
  virtual AnswerFormat answer_format() const { return {}; }
  // Reads an answer; `in_thinking` is of the continuation before it.
  virtual AnswerParser StartAnswer(bool in_thinking) const;
};

// A format of BuiltinChats(), for files without a template of their own: the tokens between one
// answer and the next are fixed.
class FixedChatFormat : public ChatFormat {
 public:
  // `tokenizer` must outlive the object. InvalidArgument when its vocabulary lacks a control token
  // of the template.
  static absl::StatusOr<FixedChatFormat> Create(const Tokenizer& tokenizer,
                                                ChatTemplate chat_template);

  // The control tokens that Create asks a vocabulary for.
  static absl::Span<const char* const> ControlTokens(ChatTemplate chat_template);

  // The start of a conversation, up to where the model answers. `system` may be empty; if the
  // template has no system role, it precedes the user's text.
  absl::StatusOr<std::vector<int32_t>> FirstTurn(absl::string_view system,
                                                 absl::string_view user) const;

  // The tokens after `conversation`, which ends with an answer (without its end-of-generation
  // token): the end of that turn and the user's next turn, up to where the model answers.
  absl::StatusOr<std::vector<int32_t>> NextTurn(absl::Span<const int32_t> conversation,
                                                absl::string_view user) const;

  absl::StatusOr<Continuation> Next(const ChatTexts& texts, absl::Span<const int32_t> conversation,
                                    bool ends_with_answer) const override;

  // That of BuiltinTemplate, as is answer_format().
  uint64_t fingerprint() const override { return fingerprint_; }
  AnswerFormat answer_format() const override { return answer_format_; }
  AnswerParser StartAnswer(bool in_thinking) const override;

 private:
  struct Markup;
  FixedChatFormat(const Tokenizer& tokenizer, ChatTemplate chat_template);

  static const Markup& MarkupOf(ChatTemplate chat_template);
  absl::Status AppendUser(absl::string_view user, std::vector<int32_t>& tokens) const;

  const Tokenizer* tokenizer_;
  const Markup* markup_;
  AnswerFormat answer_format_;
  uint64_t fingerprint_;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_CHAT_CHAT_H_
