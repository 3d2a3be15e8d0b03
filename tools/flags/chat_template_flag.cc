#include "tools/flags/chat_template_flag.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "gemma_like/chat/builtin_templates.h"
#include "tools/read_input.h"

namespace inlay {
namespace {

constexpr std::pair<const char*, ChatTemplate> kBuiltIn[] = {{"gemma", ChatTemplate::kGemma},
                                                             {"granite", ChatTemplate::kGranite},
                                                             {"chatml", ChatTemplate::kChatMl},
                                                             {"none", ChatTemplate::kNone}};

}  // namespace

void AddChatTemplateFlag(CLI::App& command, std::string& name_or_file) {
  command.add_option("--chat-template", name_or_file,
                     "write chats in a built-in format (gemma, granite, chatml, none) or by a file "
                     "with a Jinja template (default: by the model's own template)");
}

absl::StatusOr<ChatTemplateChoice> ChatTemplateChoice::Read(const std::string& name_or_file) {
  ChatTemplateChoice choice;
  if (name_or_file.empty()) return choice;
  for (const auto& [name, built_in] : kBuiltIn) {
    if (name_or_file == name) choice.built_in_ = built_in;
  }
  if (choice.built_in_.has_value()) return choice;
  INLAY_ASSIGN_OR_RETURN(Input file, Input::Open(name_or_file));
  choice.file_ = file.name();
  INLAY_ASSIGN_OR_RETURN(choice.source_, file.ReadAll());
  return choice;
}

absl::StatusOr<ChatRenderer> ChatTemplateChoice::MakeRenderer(const LoadedModel& model) const {
  if (built_in_.has_value())
    return ChatRenderer::CreateFrom(*model.tokenizer, BuiltinTemplate(*built_in_));
  if (source_.has_value()) return ChatRenderer::CreateFrom(*model.tokenizer, *source_, file_);
  absl::StatusOr<ChatRenderer> own = ChatRenderer::Create(model);
  if (own.ok() || !HasChatTemplate(*model.file)) return own;
  return absl::Status(
      own.status().code(),
      absl::StrCat(own.status().message(), "; --chat-template NAME or FILE uses another"));
}

}  // namespace inlay
