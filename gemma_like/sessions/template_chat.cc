#include "gemma_like/sessions/template_chat.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/about.h"
#include "base/status_macros.h"
#include "io/gguf/gguf.h"

namespace inlay {
namespace {

using jinja::Origin;
using jinja::Value;

// Names and roles are ours: a template may make a control token of a role.
Value Own(absl::string_view text) { return Value::String(text, Origin::kTemplate); }

Value Message(absl::string_view role, absl::string_view content) {
  const auto message = std::make_shared<jinja::DictRep>();
  message->Set(Own("role"), Own(role));
  message->Set(Own("content"), Value::String(content, Origin::kMessage));
  message->Finish(nullptr);
  return Value::Dict(message);
}

}  // namespace

void SetTokenTexts(const Tokenizer& tokenizer, jinja::DictRep& variables) {
  const auto set = [&](absl::string_view name, std::optional<int32_t> id) {
    if (id.has_value()) variables.Set(Own(name), Own(tokenizer.TokenText(*id)));
  };
  set("bos_token", tokenizer.bos());
  set("eos_token", tokenizer.eos());
}

TemplateChatFormat::TemplateChatFormat(const Tokenizer& tokenizer, jinja::Template chat_template)
    : tokenizer_(tokenizer), template_(std::move(chat_template)) {}

absl::StatusOr<std::unique_ptr<TemplateChatFormat>> TemplateChatFormat::Create(
    const Tokenizer& tokenizer, absl::string_view source) {
  INLAY_ASSIGN_OR_RETURN(jinja::Template parsed, jinja::Template::Parse(source));
  return std::unique_ptr<TemplateChatFormat>(new TemplateChatFormat(tokenizer, std::move(parsed)));
}

absl::StatusOr<jinja::Text> TemplateChatFormat::Render(absl::string_view system,
                                                       absl::Span<const Exchange> before,
                                                       absl::string_view user) const {
  jinja::Values messages;
  if (!system.empty()) messages.push_back(Message("system", system));
  for (const Exchange& exchange : before) {
    messages.push_back(Message("user", exchange.user));
    if (!exchange.answer.has_value()) {
      return absl::FailedPreconditionError(
          "the chat was saved by a version of this program that kept no answers, which the model's "
          "chat template needs; a built-in format can go on with it (--chat-template)");
    }
    messages.push_back(Message("assistant", *exchange.answer));
  }
  messages.push_back(Message("user", user));
  const auto inputs = std::make_shared<jinja::DictRep>();
  inputs->Set(Own("messages"), Value::List(std::move(messages)));
  inputs->Set(Own("tools"), Value::None());
  inputs->Set(Own("documents"), Value::None());
  inputs->Set(Own("add_generation_prompt"), Value::Bool(true));
  SetTokenTexts(tokenizer_, *inputs);
  inputs->Finish(nullptr);
  absl::StatusOr<jinja::Text> text = template_.Render(Value::Dict(inputs), options_);
  if (text.ok() || absl::IsFailedPrecondition(text.status())) return text;
  return About("the chat template", text.status());
}

absl::StatusOr<std::vector<int32_t>> TemplateChatFormat::Encode(const jinja::Text& text) const {
  std::vector<TrustRun> runs;
  for (const jinja::OriginRun& run : text.runs()) {
    runs.push_back({.end = run.end, .trusted = run.origin == Origin::kTemplate});
  }
  return tokenizer_.EncodeMarked(text.bytes(), runs);
}

absl::StatusOr<Continuation> TemplateChatFormat::Next(const ChatTexts& texts,
                                                      absl::Span<const int32_t> conversation,
                                                      bool ends_with_answer) const {
  INLAY_ASSIGN_OR_RETURN(const jinja::Text whole, Render(texts.system, texts.before, texts.user));
  if (whole.empty()) return absl::InvalidArgumentError("the chat template writes nothing");
  INLAY_ASSIGN_OR_RETURN(std::vector<int32_t> tokens, Encode(whole));
  if (ends_with_answer && !texts.before.empty()) {
    const Exchange& last = texts.before.back();
    INLAY_ASSIGN_OR_RETURN(
        const jinja::Text before,
        Render(texts.system, texts.before.first(texts.before.size() - 1), last.user));
    const std::string said = absl::StrCat(before.bytes(), *last.answer);
    if (absl::StartsWith(whole.bytes(), said)) {
      INLAY_ASSIGN_OR_RETURN(const std::vector<int32_t> head, Encode(whole.Part(0, said.size())));
      // Where the answer's last word does not run on in what follows, the tokens after it are the
      // same whatever tokens the answer has.
      if (head.size() < tokens.size() && std::equal(head.begin(), head.end(), tokens.begin())) {
        tokens.erase(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(head.size()));
        return Continuation{.keep = conversation.size(), .tokens = std::move(tokens)};
      }
    }
  }
  const size_t most = std::min(conversation.size(), tokens.size() - 1);
  const auto [end, unused] = std::mismatch(
      conversation.begin(), conversation.begin() + static_cast<ptrdiff_t>(most), tokens.begin());
  const size_t keep = static_cast<size_t>(end - conversation.begin());
  tokens.erase(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(keep));
  return Continuation{.keep = keep, .tokens = std::move(tokens)};
}

bool HasChatTemplate(const LoadedModel& model) {
  return model.file->Find(kChatTemplateKey) != nullptr;
}

absl::StatusOr<std::shared_ptr<const ChatFormat>> MakeChatFormat(const LoadedModel& model) {
  const GgufFile& file = *model.file;
  if (!HasChatTemplate(model)) {
    INLAY_ASSIGN_OR_RETURN(
        FixedChatFormat fixed,
        FixedChatFormat::Create(*model.tokenizer, model.engine->info().chat_template));
    return std::make_shared<const FixedChatFormat>(std::move(fixed));
  }
  INLAY_ASSIGN_OR_RETURN(const absl::string_view source, file.GetString(kChatTemplateKey));
  auto format = TemplateChatFormat::Create(*model.tokenizer, source);
  if (format.ok()) return std::shared_ptr<const ChatFormat>(*std::move(format));
  return About(absl::StrCat(file.name(), ": its chat template"), format.status());
}

}  // namespace inlay
