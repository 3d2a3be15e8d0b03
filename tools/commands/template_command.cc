// inlay template: what a chat template makes of messages.
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/about.h"
#include "base/status_macros.h"
#include "gemma_like/chat/chat_renderer.h"
#include "io/gguf/gguf.h"
#include "io/template/jinja.h"
#include "io/template/json_input.h"
#include "io/tokenizer/load_tokenizer.h"
#include "io/tokenizer/tokenizer.h"
#include "tools/commands/commands.h"
#include "tools/flags/model_flags.h"
#include "tools/json_text.h"
#include "tools/output.h"
#include "tools/read_input.h"
#include "tools/sandbox.h"

namespace inlay {
namespace {

struct TemplateFlags {
  ModelFlags model;
  std::string file;
  std::string input = "-";
  bool json = false;
};

// A template and the variables that its file gives it.
struct ChatTemplateSource {
  std::string text;
  std::string name;  // for messages
  std::shared_ptr<jinja::DictRep> variables = std::make_shared<jinja::DictRep>();
};

absl::StatusOr<ChatTemplateSource> ReadModel(const ModelFlags& flags) {
  INLAY_ASSIGN_OR_RETURN(const std::string path, FindModel(flags));
  INLAY_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(path));
  if (file.Find(kChatTemplateKey) == nullptr)
    return absl::InvalidArgumentError(
        absl::StrCat(path, " holds no chat template (", kChatTemplateKey, ")"));
  INLAY_ASSIGN_OR_RETURN(const absl::string_view text, file.GetString(kChatTemplateKey));
  INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, LoadTokenizer(file));
  ChatTemplateSource source = {.text = std::string(text), .name = path};
  SetTokenTexts(*tokenizer, *source.variables);
  return source;
}

// The variables of the input, of which the texts of tokens are as trusted as the template; those
// that the input lacks are the model's.
absl::StatusOr<jinja::Value> MakeInputs(const jinja::Value& input,
                                        const ChatTemplateSource& source) {
  using jinja::Origin;
  using jinja::Value;
  for (const auto& [name, value] : input.dict().entries()) {
    const bool token = name.bytes() == "bos_token" || name.bytes() == "eos_token";
    const bool trusted = token && value.is(jinja::Type::kString);
    source.variables->Set(name, trusted ? Value::String(value.bytes(), Origin::kTemplate) : value);
  }
  source.variables->Finish(nullptr);
  return Value::Dict(source.variables);
}

// The runs of the text, as [{"from": "template", "text": "..."}, ...].
std::string RunsAsJson(const jinja::Text& text) {
  auto runs = nlohmann::ordered_json::array();
  size_t begin = 0;
  for (const jinja::OriginRun& run : text.runs()) {
    const bool own = run.origin == jinja::Origin::kTemplate;
    runs.push_back({{"from", own ? "template" : "message"},
                    {"text", std::string(text.bytes().substr(begin, run.end - begin))}});
    begin = run.end;
  }
  return JsonText(runs);
}

absl::Status Run(const TemplateFlags& flags) {
  // Before the model: --sandbox lets no other file be opened after that.
  INLAY_ASSIGN_OR_RETURN(Input input, Input::Open(flags.input));
  ChatTemplateSource source;
  if (flags.file.empty()) {
    INLAY_ASSIGN_OR_RETURN(source, ReadModel(flags.model));
  } else {
    INLAY_ASSIGN_OR_RETURN(Input file, Input::Open(flags.file));
    INLAY_ASSIGN_OR_RETURN(source.text, file.ReadAll());
    source.name = file.name();
    if (flags.model.sandbox) INLAY_RETURN_IF_ERROR(EnterSandbox({}));
  }
  const auto parsed = jinja::Template::Parse(source.text);
  if (!parsed.ok()) return About(source.name, parsed.status());
  INLAY_ASSIGN_OR_RETURN(const std::string json, input.ReadAll());
  const auto value = jinja::ParseJson(json);
  if (!value.ok()) return About(input.name(), value.status());
  if (!value->is(jinja::Type::kDict))
    return absl::InvalidArgumentError(
        absl::StrCat(input.name(), " holds no JSON object: {\"messages\": [...]} is expected"));
  INLAY_ASSIGN_OR_RETURN(const jinja::Value inputs, MakeInputs(*value, source));
  const auto text = parsed->Render(inputs);
  if (absl::IsFailedPrecondition(text.status())) return text.status();  // in the template's words
  if (!text.ok()) return About(source.name, text.status());
  Output out(STDOUT_FILENO, flags.json ? Output::Form::kPrintable : Output::Form::kRawUnlessShown);
  out.Write(flags.json ? absl::string_view(RunsAsJson(*text)) : text->bytes());
  return out.Finish();
}

}  // namespace

void AddTemplate(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<TemplateFlags>();
  CLI::App& command = *app.add_subcommand(
      "template", "Prints what a chat template makes of messages, tools and other variables.");
  CLI::Option* const model = AddModelFlag(command, flags->model);
  AddModelArgument(command, model, flags->model);
  CLI::Option* const file =
      command
          .add_option("--file", flags->file,
                      "render this template (Jinja2) instead of the model's; -: standard input")
          ->type_name("FILE")
          ->excludes(model)
          ->excludes(command.get_option("MODEL"));
  if (flags->model.hub_option != nullptr) file->excludes(flags->model.hub_option);
  command
      .add_option("--input", flags->input,
                  "a file with the variables as one JSON object, as {\"messages\": [...], "
                  "\"tools\": [...], \"add_generation_prompt\": true}; -: standard input "
                  "(default)")
      ->type_name("FILE");
  AddFormatFlag(command, flags->json);
  command.callback([flags, &action] { action = [flags] { return Run(*flags); }; });
}

}  // namespace inlay
