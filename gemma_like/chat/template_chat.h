// Chats in the form that a model file's own template gives them.
#ifndef INLAY_GEMMA_LIKE_CHAT_TEMPLATE_CHAT_H_
#define INLAY_GEMMA_LIKE_CHAT_TEMPLATE_CHAT_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gemma_like/chat/answer_parser.h"
#include "gemma_like/chat/chat.h"
#include "gemma_like/chat/chat_renderer.h"
#include "gemma_like/load_model.h"
#include "io/template/value.h"

namespace inlay {

// Renders the whole chat for each answer. Earlier answers are taken apart, so that a template gets
// thoughts and calls as such.
//
// A template normally leaves the text of earlier turns as it was, so the conversation keeps the
// tokens that the model generated, and only what follows the last answer is new. If a template
// writes earlier turns otherwise than before, as those do that drop the thinking of earlier
// answers, the conversation is kept as far as the tokens agree.
class TemplateChatFormat : public ChatFormat {
 public:
  // `tools` and `variables` as in ChatInput.
  explicit TemplateChatFormat(ChatRenderer renderer, jinja::Value tools = jinja::Value::None(),
                              jinja::Value variables = jinja::Value::None());

  // FailedPrecondition with the template's own words when it refuses the chat; OutOfRange
  // when rendering takes too many steps or too much memory.
  absl::StatusOr<Continuation> Next(const ChatTexts& texts, absl::Span<const int32_t> conversation,
                                    bool ends_with_answer) const override;

  // Of the template and of what it writes of a message at a fixed time.
  uint64_t fingerprint() const override { return fingerprint_; }

  // Without tools, what would be a call is text.
  AnswerFormat answer_format() const override { return format_; }
  AnswerParser StartAnswer(bool in_thinking) const override;

 private:
  // The chat up to where the model answers `user`.
  absl::StatusOr<ChatInput> MakeInput(absl::string_view system, absl::Span<const Exchange> before,
                                      absl::string_view user) const;
  // An earlier answer.
  jinja::Value Answered(absl::string_view answer) const;

  ChatRenderer renderer_;
  AnswerFormat format_;
  ChatInput input_;      // without messages; one time for the whole chat
  bool thinks_ = false;  // the template opens the thoughts of an answer
  uint64_t fingerprint_;
};

// The format of a model's chats: its file's own template, or else the one that its config names.
// The errors name the file.
// `tools` and `variables` are for its template; without one InvalidArgument where there are any.
absl::StatusOr<std::shared_ptr<const ChatFormat>> MakeChatFormat(
    const LoadedModel& model, const jinja::Value& tools = jinja::Value::None(),
    const jinja::Value& variables = jinja::Value::None());

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_CHAT_TEMPLATE_CHAT_H_
