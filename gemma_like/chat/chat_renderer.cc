#include "gemma_like/chat/chat_renderer.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/about.h"
#include "base/out_of_memory.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/xxh64.h"
#include "gemma_like/chat/builtin_templates.h"
#include "gemma_like/chat/chat.h"
#include "gemma_like/chat/message_roles.h"
#include "io/gguf/gguf.h"
#include "io/template/json_input.h"

namespace inlay {
namespace {

using jinja::DictRep;
using jinja::Origin;
using jinja::Type;
using jinja::Value;

// The variables that every chat has.
constexpr std::array<absl::string_view, 5> kRendererVariables = {
    "messages", "tools", "add_generation_prompt", "bos_token", "eos_token"};

// For a chat of a few words, with which a template is tried.
constexpr uint64_t kMostProbeSteps = 200'000;

Value VariableName(absl::string_view name) { return Value::String(name, Origin::kTemplate); }

absl::Status AddVariables(const Value& variables, DictRep& inputs) {
  if (variables.is(Type::kNone) || variables.is(Type::kUndefined)) return absl::OkStatus();
  if (!variables.is(Type::kDict))
    return absl::InvalidArgumentError("the template's variables are not an object");
  for (const auto& [name, value] : variables.dict().entries()) {
    if (std::find(kRendererVariables.begin(), kRendererVariables.end(), name.bytes()) !=
        kRendererVariables.end()) {
      return absl::InvalidArgumentError(absl::StrCat("the template's variable ",
                                                     QuoteForMessage(name.bytes()),
                                                     " is the chat's own and cannot be set"));
    }
    inputs.Set(name, value);
  }
  return absl::OkStatus();
}

absl::StatusOr<Value> Named(absl::string_view what, absl::StatusOr<Value> value) {
  if (!value.ok()) return About(what, value.status());
  return value;
}

absl::StatusOr<ChatInput> InputOf(absl::StatusOr<Value> messages, absl::StatusOr<Value> tools,
                                  absl::StatusOr<Value> variables) {
  ChatInput input;
  INLAY_ASSIGN_OR_RETURN(input.messages, Named("the messages", std::move(messages)));
  INLAY_ASSIGN_OR_RETURN(input.tools, Named("the tools", std::move(tools)));
  INLAY_ASSIGN_OR_RETURN(input.variables, Named("the template's variables", std::move(variables)));
  return input;
}

absl::StatusOr<Value> ParseOrNone(absl::string_view json) {
  if (json.empty()) return Value::None();
  return jinja::ParseJson(json);
}

// Whether the file has a template under this key. Some files have an empty one, which says as much
// as none.
bool HasTemplate(const GgufFile& file, absl::string_view key) {
  if (file.Find(key) == nullptr) return false;
  const absl::StatusOr<absl::string_view> text = file.GetString(key);
  return !text.ok() || !text->empty();  // what is no string is refused when it is read
}

// Whether any message of a user has a content.
bool UserSpeaks(const Value& messages) {
  const jinja::Values& all = messages.sequence()->items;
  return std::any_of(all.begin(), all.end(), [](const Value& message) {
    const Value* content = message.dict().Find("content");
    return IsUser(message) && !(content->is(Type::kString) && content->bytes().empty());
  });
}

// Whether the text ends amid thoughts: `prompt` is its part from the generation prompt on.
bool EndsInThinking(const AnswerFormat& format, absl::string_view text, absl::string_view prompt) {
  if (format.think_begin.empty()) return false;
  if (prompt.empty())
    return absl::EndsWith(absl::StripTrailingAsciiWhitespace(text), format.think_begin);
  const size_t begin = prompt.rfind(format.think_begin);
  return begin != absl::string_view::npos &&
         prompt.find(format.think_end, begin) == absl::string_view::npos;
}

}  // namespace

void SetTokenTexts(const Tokenizer& tokenizer, DictRep& variables) {
  const auto set = [&](absl::string_view name, std::optional<int32_t> id) {
    if (!id.has_value()) return;
    variables.Set(VariableName(name), Value::String(tokenizer.TokenText(*id), Origin::kTemplate));
  };
  set("bos_token", tokenizer.bos());
  set("eos_token", tokenizer.eos());
}

bool ChatInput::has_tools() const {
  return tools.is_sequence(jinja::SequenceKind::kList) && !tools.sequence()->items.empty();
}

absl::StatusOr<ChatInput> ChatInput::Parse(absl::string_view messages, absl::string_view tools,
                                           absl::string_view variables) {
  return InputOf(ParseOrNone(messages), ParseOrNone(tools), ParseOrNone(variables));
}

absl::StatusOr<ChatInput> ChatInput::From(const Json& messages, const Json& tools,
                                          const Json& variables) {
  return InputOf(jinja::FromJson(messages), jinja::FromJson(tools), jinja::FromJson(variables));
}

bool HasChatTemplate(const GgufFile& file) {
  return HasTemplate(file, kChatTemplateKey) || HasTemplate(file, kToolUseTemplateKey);
}

absl::StatusOr<ChatRenderer::Source> ChatRenderer::Parse(const Tokenizer& tokenizer,
                                                         absl::string_view text, std::string name) {
  auto parsed = jinja::Template::Parse(text);
  if (!parsed.ok()) return About(name, parsed.status());
  Source source{.name = std::move(name),
                .hash = Xxh64Of(text.data(), text.size()),
                .parsed = *std::move(parsed),
                .format = AnswerFormat::Of(text),
                .style = MessageStyle::Of(text),
                .parts = {},
                .rules = {}};
  ChatInput input;
  input.options.limits.max_steps = kMostProbeSteps;
  const auto render = [&](const Value& messages) -> absl::StatusOr<jinja::Text> {
    INLAY_ASSIGN_OR_RETURN(const Value prepared, PrepareMessages(messages, source.style));
    return RenderMessages(tokenizer, source, prepared, input);
  };
  source.parts = ContentParts::Of([&](const Value& messages, const ContentParts& parts) {
    source.parts = parts;
    return render(messages);
  });
  source.rules = TurnRules::Of(render);
  return source;
}

absl::StatusOr<ChatRenderer> ChatRenderer::CreateFrom(const Tokenizer& tokenizer,
                                                      absl::string_view source,
                                                      absl::string_view name) {
  INLAY_ASSIGN_OR_RETURN(Source parsed, Parse(tokenizer, source, std::string(name)));
  return ChatRenderer(tokenizer, std::move(parsed));
}

absl::StatusOr<ChatRenderer> ChatRenderer::Create(const LoadedModel& model) {
  return Create(*model.file, *model.tokenizer, model.engine->info().chat_template);
}

absl::StatusOr<ChatRenderer> ChatRenderer::Create(const GgufFile& file, const Tokenizer& tokenizer,
                                                  ChatTemplate built_in) {
  if (!HasChatTemplate(file)) {
    // What FixedChatFormat needs, the same template needs in Jinja.
    INLAY_RETURN_IF_ERROR(FixedChatFormat::Create(tokenizer, built_in).status());
    return CreateFrom(tokenizer, BuiltinTemplate(built_in), "the built-in chat template");
  }
  const auto read = [&](absl::string_view key) -> absl::StatusOr<Source> {
    INLAY_ASSIGN_OR_RETURN(const absl::string_view text, file.GetString(key));
    const absl::string_view variant = key == kChatTemplateKey ? "" : " for tools";
    return Parse(tokenizer, text, absl::StrCat(file.name(), ": its chat template", variant));
  };
  // A file may have the template for tools alone.
  const bool has_default = HasTemplate(file, kChatTemplateKey);
  INLAY_ASSIGN_OR_RETURN(Source source, read(has_default ? kChatTemplateKey : kToolUseTemplateKey));
  ChatRenderer renderer(tokenizer, std::move(source));
  if (has_default && HasTemplate(file, kToolUseTemplateKey)) {
    INLAY_ASSIGN_OR_RETURN(renderer.tool_use_, read(kToolUseTemplateKey));
  }
  return renderer;
}

uint64_t ChatRenderer::hash() const {
  const std::array<uint64_t, 2> hashes = {source(/*tools=*/false).hash,
                                          source(/*tools=*/true).hash};
  return Xxh64Of(hashes.data(), sizeof(hashes));
}

absl::StatusOr<jinja::Text> ChatRenderer::RenderText(const ChatInput& input) const {
  const Source& used = source(input.has_tools());
  INLAY_ASSIGN_OR_RETURN(const Value messages, PrepareMessages(input.messages, used.style));
  if (used.parts.user_is_lost && UserSpeaks(messages)) {
    return absl::FailedPreconditionError(
        absl::StrCat(used.name,
                     " leaves out what the user says: it writes the content of messages "
                     "neither as a text nor as a list of parts"));
  }
  return RenderMessages(*tokenizer_, used, used.rules.Adapt(messages), input);
}

absl::StatusOr<jinja::Text> ChatRenderer::RenderMessages(const Tokenizer& tokenizer,
                                                         const Source& source,
                                                         const Value& messages,
                                                         const ChatInput& input) {
  const auto inputs = std::make_shared<DictRep>();
  const bool no_tools = input.tools.is(Type::kNone) || input.tools.is(Type::kUndefined);
  if (!no_tools && !input.tools.is_sequence(jinja::SequenceKind::kList))
    return absl::InvalidArgumentError("the tools are not a list");
  inputs->Set(VariableName("messages"), source.parts.Adapt(messages));
  inputs->Set(VariableName("tools"), input.has_tools() ? input.tools : Value::None());
  inputs->Set(VariableName("documents"), Value::None());
  inputs->Set(VariableName("add_generation_prompt"), Value::Bool(input.add_generation_prompt));
  SetTokenTexts(tokenizer, *inputs);
  INLAY_RETURN_IF_ERROR(AddVariables(input.variables, *inputs));
  inputs->Finish(nullptr);
  absl::StatusOr<jinja::Text> text = source.parsed.Render(Value::Dict(inputs), input.options);
  if (text.ok() || absl::IsFailedPrecondition(text.status())) return text;
  return About(source.name, text.status());
}

absl::StatusOr<std::vector<int32_t>> ChatRenderer::Encode(const jinja::Text& text) const {
  std::vector<TrustRun> runs;
  for (const jinja::OriginRun& run : text.runs()) {
    runs.push_back({.end = run.end, .trusted = run.origin == Origin::kTemplate});
  }
  return tokenizer_->EncodeMarked(text.bytes(), runs);
}

absl::StatusOr<RenderedChat> ChatRenderer::Render(const ChatInput& input) const {
  return OrOutOfMemory("rendering a chat", [&] { return RenderBoth(input); });
}

// With the generation prompt and without, to see where it begins.
absl::StatusOr<RenderedChat> ChatRenderer::RenderBoth(const ChatInput& input) const {
  RenderedChat chat;
  chat.answer_format = answer_format(input.has_tools());
  INLAY_ASSIGN_OR_RETURN(chat.text, RenderText(input));
  INLAY_ASSIGN_OR_RETURN(chat.tokens, Encode(chat.text));
  chat.generation_prompt = chat.tokens.size();
  absl::string_view prompt;
  if (input.add_generation_prompt) {
    ChatInput without = input;
    without.add_generation_prompt = false;
    // A template may refuse a chat that it does not let the assistant go on with.
    if (const auto before = RenderText(without); before.ok()) {
      INLAY_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, Encode(*before));
      const auto shared =
          std::mismatch(chat.tokens.begin(), chat.tokens.end(), tokens.begin(), tokens.end());
      chat.generation_prompt = static_cast<size_t>(shared.first - chat.tokens.begin());
      const absl::string_view bytes = chat.text.bytes(), shorter = before->bytes();
      const auto end = std::mismatch(bytes.begin(), bytes.end(), shorter.begin(), shorter.end());
      prompt = bytes.substr(static_cast<size_t>(end.first - bytes.begin()));
    }
  }
  chat.in_thinking = EndsInThinking(chat.answer_format, chat.text.bytes(), prompt);
  return chat;
}

}  // namespace inlay
