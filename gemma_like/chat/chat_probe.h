// Chats of a few words, with which a chat template is tried.
#ifndef INLAY_GEMMA_LIKE_CHAT_CHAT_PROBE_H_
#define INLAY_GEMMA_LIKE_CHAT_CHAT_PROBE_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/template/text.h"
#include "io/template/value.h"

namespace inlay {

class ChatProbe {
 public:
  // Renders messages as PrepareMessages makes them.
  using Render = absl::FunctionRef<absl::StatusOr<jinja::Text>(const jinja::Value& messages)>;

  // One letter for each message. s: system, u: user, a: assistant, c: assistant with a call, r: the
  // call's result.
  explicit ChatProbe(absl::string_view roles);

  // Whether every text is in what the template writes; the error of `render` where it refuses the
  // chat.
  absl::StatusOr<bool> Written(Render render) const;

 private:
  std::vector<std::string> texts_;  // but the call's
  jinja::Value messages_;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_CHAT_CHAT_PROBE_H_
