// Who says a message, as PrepareMessages makes them.
#ifndef INLAY_GEMMA_LIKE_CHAT_MESSAGE_ROLES_H_
#define INLAY_GEMMA_LIKE_CHAT_MESSAGE_ROLES_H_

#include "absl/strings/string_view.h"
#include "io/template/value.h"

namespace inlay {

inline absl::string_view RoleOf(const jinja::Value& message) {
  return message.dict().Find("role")->bytes();
}
inline bool IsUser(const jinja::Value& message) { return RoleOf(message) == "user"; }
inline bool IsAssistant(const jinja::Value& message) {
  return RoleOf(message) == "assistant" || RoleOf(message) == "model";
}
// Of a tool.
inline bool IsResult(const jinja::Value& message) {
  return RoleOf(message) == "tool" || RoleOf(message) == "function";
}
inline bool IsSystem(const jinja::Value& message) {
  return RoleOf(message) == "system" || RoleOf(message) == "developer";
}

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_CHAT_MESSAGE_ROLES_H_
