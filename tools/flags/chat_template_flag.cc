#include "tools/flags/chat_template_flag.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/format.h"
#include "base/status_macros.h"
#include "base/xxh64.h"
#include "gemma_like/chat/builtin_templates.h"
#include "gemma_like/chat/template_chat.h"
#include "io/gguf/gguf.h"
#include "tools/read_input.h"

namespace inlay {

void AddChatTemplateFlag(CLI::App& command, std::string& name_or_file) {
  std::string value;
  for (const BuiltinChat& chat : BuiltinChats()) absl::StrAppend(&value, chat.name, "|");
  command
      .add_option("--chat-template", name_or_file,
                  "write chats in a built-in format or by a file with a Jinja template (default: "
                  "by the model's own template)")
      ->type_name(value + "FILE");
}

absl::StatusOr<ChatTemplateChoice> ChatTemplateChoice::Read(const std::string& name_or_file) {
  ChatTemplateChoice choice;
  if (name_or_file.empty()) return choice;
  for (const BuiltinChat& chat : BuiltinChats()) {
    if (name_or_file == chat.name) choice.built_in_ = chat.format;
  }
  if (choice.built_in_.has_value()) return choice;
  INLAY_ASSIGN_OR_RETURN(Input file, Input::Open(name_or_file));
  choice.file_ = file.name();
  INLAY_ASSIGN_OR_RETURN(choice.source_, file.ReadAll());
  return choice;
}

namespace {

// What to do about a model's own template that cannot be run.
template <class T>
absl::StatusOr<T> OrAnother(absl::StatusOr<T> own, const LoadedModel& model) {
  if (own.ok() || !HasChatTemplate(*model.file)) return own;
  return absl::Status(
      own.status().code(),
      absl::StrCat(own.status().message(), "; --chat-template NAME or FILE uses another"));
}

}  // namespace

absl::StatusOr<ChatRenderer> ChatTemplateChoice::MakeRenderer(const LoadedModel& model) const {
  if (built_in_.has_value())
    return ChatRenderer::CreateFrom(*model.tokenizer, BuiltinTemplate(*built_in_));
  if (source_.has_value()) return ChatRenderer::CreateFrom(*model.tokenizer, *source_, file_);
  return OrAnother(ChatRenderer::Create(model), model);
}

absl::StatusOr<std::shared_ptr<const ChatFormat>> ChatTemplateChoice::MakeFormat(
    const LoadedModel& model, const jinja::Value& tools, const jinja::Value& variables) const {
  if (built_in_.has_value()) {
    if (!tools.is(jinja::Type::kNone) || !variables.is(jinja::Type::kNone)) {
      return absl::InvalidArgumentError(
          "the built-in chat formats take none of --tools, --think and --no-think");
    }
    INLAY_ASSIGN_OR_RETURN(FixedChatFormat fixed,
                           FixedChatFormat::Create(*model.tokenizer, *built_in_));
    return std::make_shared<const FixedChatFormat>(std::move(fixed));
  }
  if (!source_.has_value()) return OrAnother(MakeChatFormat(model, tools, variables), model);
  INLAY_ASSIGN_OR_RETURN(ChatRenderer renderer, MakeRenderer(model));
  return std::make_shared<const TemplateChatFormat>(std::move(renderer), tools, variables);
}

std::string ChatTemplateChoice::Identity(const LoadedModel& model) const {
  const auto hash = [](absl::string_view text, uint64_t seed) {
    return Xxh64Of(text.data(), text.size(), seed);
  };
  if (built_in_.has_value()) {
    const auto named =
        std::find_if(BuiltinChats().begin(), BuiltinChats().end(),
                     [this](const BuiltinChat& chat) { return chat.format == *built_in_; });
    return std::string(named->name);
  }
  if (source_.has_value()) return Format("xxh64 %016x", hash(*source_, 0));
  const absl::string_view own = model.file->GetString(kChatTemplateKey).value_or("");
  const absl::string_view tools = model.file->GetString(kToolUseTemplateKey).value_or("");
  return Format("xxh64 %016x", hash(tools, hash(own, 0)));
}

bool ChatTemplateChoice::EndsNoAnswer(const LoadedModel& model) const {
  if (source_.has_value()) return false;
  if (built_in_.has_value()) return *built_in_ == ChatTemplate::kNone;
  return !HasChatTemplate(*model.file) && model.engine->info().chat_template == ChatTemplate::kNone;
}

}  // namespace inlay
