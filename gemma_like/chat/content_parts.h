// Contents of messages for chat templates that read them only as lists of parts.
#ifndef INLAY_GEMMA_LIKE_CHAT_CONTENT_PARTS_H_
#define INLAY_GEMMA_LIKE_CHAT_CONTENT_PARTS_H_

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "io/template/text.h"
#include "io/template/value.h"

namespace inlay {

// Templates of models that see pictures may look for [{"type": "text", "text": ...}] alone, and
// write nothing of a content that is a text.
struct ContentParts {
  // The template leaves out texts of this role, and writes them as such a list.
  bool user = false, system = false, assistant = false, result = false;
  // It leaves out what the user says in either form.
  bool user_is_lost = false;

  friend bool operator==(const ContentParts&, const ContentParts&) = default;

  // Renders messages, with contents adapted by `parts`.
  using Render = absl::FunctionRef<absl::StatusOr<jinja::Text>(const jinja::Value& messages,
                                                               const ContentParts& parts)>;

  // Of the template that `render` renders, found out with chats of a few words. Of a template that
  // refuses these nothing is known, and so nothing changed.
  static ContentParts Of(Render render);

  // The messages as PrepareMessages makes them, with texts of these roles as lists.
  jinja::Value Adapt(const jinja::Value& messages) const;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_CHAT_CONTENT_PARTS_H_
