// Chats in the form that a model file's own template gives them.
#ifndef INLAY_GEMMA_LIKE_CHAT_TEMPLATE_CHAT_H_
#define INLAY_GEMMA_LIKE_CHAT_TEMPLATE_CHAT_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gemma_like/chat/chat.h"
#include "gemma_like/chat/chat_renderer.h"
#include "gemma_like/load_model.h"
#include "io/template/render_options.h"
#include "io/template/text.h"

namespace inlay {

// Renders the whole chat for each answer, without tools.
//
// A template normally leaves the text of earlier turns as it was, so the conversation keeps the
// tokens that the model generated, and only what follows the last answer is new. If a template
// writes earlier turns otherwise than before, as those do that drop the thinking of earlier
// answers, the conversation is kept as far as the tokens agree.
class TemplateChatFormat : public ChatFormat {
 public:
  explicit TemplateChatFormat(ChatRenderer renderer) : renderer_(std::move(renderer)) {}

  // FailedPrecondition with the template's own words when it refuses the chat; ResourceExhausted
  // when rendering takes too many steps or too much memory.
  absl::StatusOr<Continuation> Next(const ChatTexts& texts, absl::Span<const int32_t> conversation,
                                    bool ends_with_answer) const override;

 private:
  // The chat up to where the model answers `user`.
  absl::StatusOr<jinja::Text> Render(absl::string_view system, absl::Span<const Exchange> before,
                                     absl::string_view user) const;

  ChatRenderer renderer_;
  jinja::RenderOptions options_;  // with one time for the whole chat
};

// The format of a model's chats: its file's own template, or else the one that its config names.
// The errors name the file.
absl::StatusOr<std::shared_ptr<const ChatFormat>> MakeChatFormat(const LoadedModel& model);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_CHAT_TEMPLATE_CHAT_H_
