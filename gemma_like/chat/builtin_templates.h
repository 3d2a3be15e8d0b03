// Chat templates for model files that bring none.
#ifndef INLAY_GEMMA_LIKE_CHAT_BUILTIN_TEMPLATES_H_
#define INLAY_GEMMA_LIKE_CHAT_BUILTIN_TEMPLATES_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "configs/config.h"

namespace inlay {

// A chat format that is built in.
struct BuiltinChat {
  ChatTemplate format;
  absl::string_view name;   // what --chat-template calls it
  absl::string_view jinja;  // see BuiltinTemplate
};

// All of them, kNone last.
absl::Span<const BuiltinChat> BuiltinChats();

// A Jinja template that writes what FixedChatFormat writes. It takes no tools.
absl::string_view BuiltinTemplate(ChatTemplate chat_template);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_CHAT_BUILTIN_TEMPLATES_H_
