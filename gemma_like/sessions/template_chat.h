// Chats in the form that a model file's own template gives them.
#ifndef INLAY_GEMMA_LIKE_SESSIONS_TEMPLATE_CHAT_H_
#define INLAY_GEMMA_LIKE_SESSIONS_TEMPLATE_CHAT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gemma_like/load_model.h"
#include "gemma_like/sessions/chat.h"
#include "io/template/jinja.h"
#include "io/template/value.h"
#include "io/tokenizer/tokenizer.h"

namespace inlay {

// The key of a model file's template.
inline constexpr absl::string_view kChatTemplateKey = "tokenizer.chat_template";

// Gives a template bos_token and eos_token, where the vocabulary has them.
void SetTokenTexts(const Tokenizer& tokenizer, jinja::DictRep& variables);

// Renders a Jinja template, as model files hold it, over the whole chat
// for each answer, with the variables that Hugging Face's apply_chat_template gives it: messages,
// add_generation_prompt, bos_token, eos_token, and no tools.
//
// A template normally leaves the text of earlier turns as it was, so the conversation keeps the
// tokens that the model generated, and only what follows the last answer is new. If a template
// writes earlier turns otherwise than before, as those do that drop the thinking of earlier
// answers, the conversation is kept as far as the tokens agree.
class TemplateChatFormat : public ChatFormat {
 public:
  // `tokenizer` must outlive the object. InvalidArgument or Unimplemented, with the line, for a
  // template that cannot be run.
  static absl::StatusOr<std::unique_ptr<TemplateChatFormat>> Create(const Tokenizer& tokenizer,
                                                                    absl::string_view source);

  // FailedPrecondition with the template's own words when it refuses the chat; ResourceExhausted
  // when rendering takes too many steps or too much memory.
  absl::StatusOr<Continuation> Next(const ChatTexts& texts, absl::Span<const int32_t> conversation,
                                    bool ends_with_answer) const override;

 private:
  TemplateChatFormat(const Tokenizer& tokenizer, jinja::Template chat_template);

  // The chat up to where the model answers `user`.
  absl::StatusOr<jinja::Text> Render(absl::string_view system, absl::Span<const Exchange> before,
                                     absl::string_view user) const;
  absl::StatusOr<std::vector<int32_t>> Encode(const jinja::Text& text) const;

  const Tokenizer& tokenizer_;
  jinja::Template template_;
  jinja::RenderOptions options_;  // with one time for the whole chat
};

// Whether the model's file holds a template.
bool HasChatTemplate(const LoadedModel& model);

// The format of a model's chats: its file's own template, or else the one that its config names.
// The errors name the file.
absl::StatusOr<std::shared_ptr<const ChatFormat>> MakeChatFormat(const LoadedModel& model);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_SESSIONS_TEMPLATE_CHAT_H_
