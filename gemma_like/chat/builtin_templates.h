// Chat templates for model files that bring none.
#ifndef INLAY_GEMMA_LIKE_CHAT_BUILTIN_TEMPLATES_H_
#define INLAY_GEMMA_LIKE_CHAT_BUILTIN_TEMPLATES_H_

#include "absl/strings/string_view.h"
#include "configs/config.h"

namespace inlay {

// A Jinja template that writes what FixedChatFormat writes. It takes no tools.
absl::string_view BuiltinTemplate(ChatTemplate chat_template);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_CHAT_BUILTIN_TEMPLATES_H_
