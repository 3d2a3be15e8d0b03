// Chats of the C API: messages to tokens, and answers to messages.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/status_macros.h"
#include "base/utf8_stream.h"
#include "gemma_like/c_api/call.h"
#include "gemma_like/c_api/chat_handle.h"
#include "gemma_like/c_api/handles.h"
#include "gemma_like/chat/answer_parser.h"
#include "gemma_like/chat/chat_messages.h"
#include "gemma_like/inlay_c.h"
#include "io/template/budget.h"
#include "io/template/limits.h"
#include "io/template/to_json.h"

namespace inlay::c_api {
namespace {

absl::string_view TextOrNone(const char* text) {
  return text == nullptr ? absl::string_view() : absl::string_view(text);
}

absl::StatusOr<inlay_chat> RenderChat(SharedModel& model, const inlay_chat_input* given) {
  INLAY_ASSIGN_OR_RETURN(
      const inlay_chat_input o,
      Complete("inlay_chat_input", given,
               {sizeof(inlay_chat_input), /*messages=*/nullptr, /*tools=*/nullptr,
                /*variables=*/nullptr, /*no_generation_prompt=*/0, /*now=*/0,
                /*chat_template=*/nullptr}));
  INLAY_RETURN_IF_ERROR(CheckNotNull({{"messages", o.messages}}));
  INLAY_ASSIGN_OR_RETURN(
      ChatInput input, ChatInput::Parse(o.messages, TextOrNone(o.tools), TextOrNone(o.variables)));
  input.add_generation_prompt = o.no_generation_prompt == 0;
  if (o.now != 0) input.options.now = absl::FromUnixSeconds(o.now);
  const absl::string_view source = TextOrNone(o.chat_template);
  std::optional<ChatRenderer> given_template;
  const ChatRenderer* renderer = nullptr;
  if (source.empty()) {
    INLAY_ASSIGN_OR_RETURN(renderer, model.Renderer());
  } else {
    INLAY_ASSIGN_OR_RETURN(given_template, ChatRenderer::CreateFrom(model.tokenizer(), source));
    renderer = &*given_template;
  }
  INLAY_ASSIGN_OR_RETURN(RenderedChat rendered, renderer->Render(input));
  const bool has_tools = input.has_tools();
  return inlay_chat{std::move(rendered), std::move(input.tools), has_tools};
}

absl::StatusOr<std::string> ReadAnswer(const inlay_chat& chat, absl::string_view answer) {
  AnswerParser parser(
      chat.rendered.answer_format,
      {.in_thinking = chat.rendered.in_thinking, .calls = chat.has_tools, .tools = chat.tools});
  // JSON is UTF-8, also where the answer ends within a character.
  Utf8Stream characters;
  std::string text = characters.Push(answer);
  text += characters.Flush();
  std::vector<AnswerEvent> events = parser.Push(text);
  for (AnswerEvent& event : parser.Finish()) events.push_back(std::move(event));
  jinja::Budget budget{jinja::Limits()};
  jinja::JsonStyle style;
  style.item_separator = jinja::Text(", ", jinja::Origin::kTemplate);
  style.key_separator = jinja::Text(": ", jinja::Origin::kTemplate);
  INLAY_ASSIGN_OR_RETURN(const jinja::Text json,
                         jinja::ToJson(budget, AnswerMessage(events), style));
  return std::string(json.bytes());
}

}  // namespace
}  // namespace inlay::c_api

using inlay::c_api::Call;
using inlay::c_api::CheckArray;
using inlay::c_api::CheckNotNull;

inlay_status inlay_render_chat(const inlay_model* model, const inlay_chat_input* input,
                               inlay_chat** chat) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"model", model}, {"input", input}, {"chat", chat}}));
    INLAY_ASSIGN_OR_RETURN(inlay_chat rendered, inlay::c_api::RenderChat(*model->shared, input));
    *chat = new inlay_chat(std::move(rendered));
    return absl::OkStatus();
  });
}

void inlay_free_chat(inlay_chat* chat) { delete chat; }

const char* inlay_chat_text(const inlay_chat* chat, size_t* size) {
  *size = 0;
  if (chat == nullptr) return nullptr;
  const absl::string_view text = chat->rendered.text.bytes();
  *size = text.size();
  return text.data();
}

const int32_t* inlay_chat_tokens(const inlay_chat* chat, size_t* count) {
  *count = 0;
  if (chat == nullptr) return nullptr;
  *count = chat->rendered.tokens.size();
  return chat->rendered.tokens.data();
}

inlay_status inlay_read_answer(const inlay_chat* chat, const char* answer, size_t answer_size,
                               char* message, size_t capacity, size_t* size) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"chat", chat}, {"size", size}}));
    INLAY_RETURN_IF_ERROR(CheckArray("answer", answer, answer_size));
    INLAY_ASSIGN_OR_RETURN(const std::string json,
                           inlay::c_api::ReadAnswer(*chat, {answer, answer_size}));
    return inlay::c_api::CopyOut<char>("bytes of text", json, message, capacity, size);
  });
}
