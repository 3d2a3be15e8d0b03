#include "gemma_like/chat/template_chat.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "base/xxh64.h"
#include "gemma_like/chat/chat_messages.h"
#include "gemma_like/chat/continue_chat.h"
#include "io/gguf/gguf.h"
#include "io/template/text.h"

namespace inlay {
namespace {

using jinja::Origin;
using jinja::Value;

Value ChatMessage(absl::string_view role, Value content) {
  const auto message = std::make_shared<jinja::DictRep>();
  message->Set(Value::String("role", Origin::kTemplate), Value::String(role, Origin::kTemplate));
  message->Set(Value::String("content", Origin::kTemplate), std::move(content));
  message->Finish(nullptr);
  return Value::Dict(message);
}

Value ChatMessage(absl::string_view role, absl::string_view content) {
  return ChatMessage(role, Value::String(content, Origin::kMessage));
}

// An answer as the model wrote it. The first markers of its thoughts are control tokens again,
// where they are any.
Value WithThoughts(const AnswerFormat& format, absl::string_view answer) {
  jinja::Text text;
  for (const absl::string_view marker : {format.think_begin, format.think_end}) {
    const size_t at = answer.find(marker);
    if (at == absl::string_view::npos) continue;
    text.Append(answer.substr(0, at), Origin::kMessage);
    text.Append(marker, Origin::kTemplate);
    answer.remove_prefix(at + marker.size());
  }
  text.Append(answer, Origin::kMessage);
  return Value::String(std::move(text));
}

}  // namespace

TemplateChatFormat::TemplateChatFormat(ChatRenderer renderer, Value tools, Value variables)
    : renderer_(std::move(renderer)) {
  input_.tools = std::move(tools);
  input_.variables = std::move(variables);
  format_ = renderer_.answer_format(input_.has_tools());
  if (!input_.has_tools()) {
    format_.calls = CallSyntax::kNone;
    format_.call_begin = format_.call_end = format_.quote = "";
  }
  fingerprint_ = renderer_.hash();
  // What is wrong with the template shows in Next.
  if (auto input = MakeInput("", {}, "Hi"); input.ok()) {
    input->options.now = absl::UnixEpoch();
    input->options.time_zone = absl::UTCTimeZone();
    const auto chat = renderer_.Render(*input);
    if (!chat.ok()) return;
    thinks_ = chat->in_thinking;
    fingerprint_ = Xxh64Of(chat->text.bytes().data(), chat->text.bytes().size(), fingerprint_);
  }
}

AnswerParser TemplateChatFormat::StartAnswer(bool in_thinking) const {
  return AnswerParser(format_, {.in_thinking = in_thinking, .calls = true, .tools = input_.tools});
}

Value TemplateChatFormat::Answered(absl::string_view answer) const {
  // Thoughts that the prompt opened, and that did not end, may be an answer for which it did not.
  const size_t end = answer.find(format_.think_end);
  const bool in_thinking =
      thinks_ && end != absl::string_view::npos && answer.find(format_.think_begin) > end;
  AnswerParser parser = StartAnswer(in_thinking);
  std::vector<AnswerEvent> events = parser.Push(answer);
  for (AnswerEvent& event : parser.Finish()) events.push_back(std::move(event));
  const Value message = AnswerMessage(events);
  // A template that looks for thoughts in the content finds them as the model wrote them.
  const bool in_content = renderer_.message_style(input_.has_tools()).reasoning_in_content;
  const bool thoughts = message.dict().Find("reasoning_content") != nullptr;
  const bool calls = message.dict().Find("tool_calls") != nullptr;
  if (!in_content || !thoughts || calls) return message;
  return ChatMessage("assistant", WithThoughts(format_, answer));
}

absl::StatusOr<ChatInput> TemplateChatFormat::MakeInput(absl::string_view system,
                                                        absl::Span<const Exchange> before,
                                                        absl::string_view user) const {
  jinja::Values messages;
  if (!system.empty()) messages.push_back(ChatMessage("system", system));
  for (const Exchange& exchange : before) {
    messages.push_back(ChatMessage("user", exchange.user));
    if (!exchange.answer.has_value()) {
      return absl::FailedPreconditionError(
          "the chat was saved by a version of this program that kept no answers, which the model's "
          "chat template needs; a built-in format can go on with it (--chat-template)");
    }
    messages.push_back(Answered(*exchange.answer));
  }
  messages.push_back(ChatMessage("user", user));
  ChatInput input = input_;
  input.messages = Value::List(std::move(messages));
  return input;
}

absl::StatusOr<Continuation> TemplateChatFormat::Next(const ChatTexts& texts,
                                                      absl::Span<const int32_t> conversation,
                                                      bool ends_with_answer) const {
  INLAY_ASSIGN_OR_RETURN(const ChatInput input, MakeInput(texts.system, texts.before, texts.user));
  INLAY_ASSIGN_OR_RETURN(const RenderedChat chat, renderer_.Render(input));
  std::optional<std::string> said;
  if (ends_with_answer && !texts.before.empty()) {
    const Exchange& last = texts.before.back();
    INLAY_ASSIGN_OR_RETURN(
        const ChatInput earlier,
        MakeInput(texts.system, texts.before.first(texts.before.size() - 1), last.user));
    INLAY_ASSIGN_OR_RETURN(const jinja::Text before, renderer_.RenderText(earlier));
    said = absl::StrCat(before.bytes(), *last.answer);
  }
  INLAY_ASSIGN_OR_RETURN(Continuation next, ContinueChat(renderer_, chat.text, said, conversation));
  next.in_thinking = chat.in_thinking;
  return next;
}

absl::StatusOr<std::shared_ptr<const ChatFormat>> MakeChatFormat(const LoadedModel& model,
                                                                 const Value& tools,
                                                                 const Value& variables) {
  if (HasChatTemplate(*model.file)) {
    INLAY_ASSIGN_OR_RETURN(ChatRenderer renderer, ChatRenderer::Create(model));
    return std::make_shared<const TemplateChatFormat>(std::move(renderer), tools, variables);
  }
  if (!tools.is(jinja::Type::kNone) || !variables.is(jinja::Type::kNone)) {
    return absl::InvalidArgumentError(
        absl::StrCat(model.file->name(), " holds no chat template, which tools and thinking need"));
  }
  INLAY_ASSIGN_OR_RETURN(
      FixedChatFormat fixed,
      FixedChatFormat::Create(*model.tokenizer, model.engine->info().chat_template));
  return std::make_shared<const FixedChatFormat>(std::move(fixed));
}

}  // namespace inlay
