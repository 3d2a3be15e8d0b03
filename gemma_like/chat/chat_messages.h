// Messages and tools as clients send them, made ready for a chat template.
#ifndef INLAY_GEMMA_LIKE_CHAT_CHAT_MESSAGES_H_
#define INLAY_GEMMA_LIKE_CHAT_CHAT_MESSAGES_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gemma_like/chat/answer_event.h"
#include "gemma_like/chat/answer_format.h"
#include "io/template/value.h"

namespace inlay {

// What templates differ in when they read the messages of an assistant. It is found in a template's
// text.
struct MessageStyle {
  // The template knows no developer: what one says is the system's.
  bool developer_is_system = false;
  // The key of what the assistant thought before it answered, besides "reasoning_content", which
  // every message has that has any: "reasoning", "thinking" or "".
  std::string reasoning_key;
  // The template has no key for thoughts. It looks for them in front of the content, between
  // <think> and </think>.
  bool reasoning_in_content = false;
  // The template leaves tool_calls out: they are part of the content in this format.
  std::optional<AnswerFormat> calls_in_content;

  static MessageStyle Of(absl::string_view template_source);
};

// The messages as templates read them:
//   - The role developer is system where `style` says so. A role that is one of system, developer,
//     user, assistant, tool, function and model is as trusted as the template, since templates make
//     control tokens of roles. All else, other roles included, is a message's text.
//   - "content" is a text: "" where it was missing or null. The texts of a list of parts,
//     [{"type": "text", "text": ...}], are on lines of their own; other parts are refused.
//   - "tool_calls" is a list of at least one call, or not there. Arguments of a call that are the
//     JSON text of an object become that object, and "" becomes {}.
//   - "reasoning_content" and calls are also where `style` says.
// InvalidArgument, naming the message, for what is no list of objects with a role, and for a
// content that is no text.
absl::StatusOr<jinja::Value> PrepareMessages(const jinja::Value& messages,
                                             const MessageStyle& style = {});

// An answer as a message of the assistant: content, reasoning_content and tool_calls, the last two
// where it has any. Calls that are void are left out.
jinja::Value AnswerMessage(absl::Span<const AnswerEvent> events);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_CHAT_CHAT_MESSAGES_H_
