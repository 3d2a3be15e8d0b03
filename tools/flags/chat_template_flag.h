// --chat-template: how chats are written.
#ifndef INLAY_TOOLS_FLAGS_CHAT_TEMPLATE_FLAG_H_
#define INLAY_TOOLS_FLAGS_CHAT_TEMPLATE_FLAG_H_

#include <memory>
#include <optional>
#include <string>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"
#include "configs/config.h"
#include "gemma_like/chat/chat.h"
#include "gemma_like/chat/chat_renderer.h"
#include "gemma_like/load_model.h"
#include "io/template/value.h"

namespace inlay {

// --chat-template NAME|FILE
void AddChatTemplateFlag(CLI::App& command, std::string& name_or_file);

// What the flag asks for. A template in a file is read at once, since --sandbox lets no file but
// the model be opened later.
class ChatTemplateChoice {
 public:
  // The name of a built-in format, a file, or "" for the model's own template.
  static absl::StatusOr<ChatTemplateChoice> Read(const std::string& name_or_file);

  // The model must outlive the results. `tools` and `variables` are for the template:
  // InvalidArgument where there is none, but a built-in format.
  absl::StatusOr<ChatRenderer> MakeRenderer(const LoadedModel& model) const;
  absl::StatusOr<std::shared_ptr<const ChatFormat>> MakeFormat(const LoadedModel& model,
                                                               const jinja::Value& tools,
                                                               const jinja::Value& variables) const;

  // What tells the template of this model's chats from others: a name, or a hash of its text.
  std::string Identity(const LoadedModel& model) const;

  // Whether nothing but a limit or the context ends an answer.
  bool EndsNoAnswer(const LoadedModel& model) const;

 private:
  std::optional<ChatTemplate> built_in_;
  std::optional<std::string> source_;  // of a template
  std::string file_;                   // that it is from
};

}  // namespace inlay

#endif  // INLAY_TOOLS_FLAGS_CHAT_TEMPLATE_FLAG_H_
