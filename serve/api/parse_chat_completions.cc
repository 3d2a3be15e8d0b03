// OpenAI: POST /v1/chat/completions.
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "serve/api/call_fields.h"
#include "serve/api/message_list.h"
#include "serve/api/parsers.h"

namespace inlay::serve {
namespace {

void ReadChatCalls(FieldReader& message, MessageList* messages) {
  const Json* const calls = message.List("tool_calls");
  if (calls == nullptr) return;
  for (size_t i = 0; i < calls->size(); ++i) {
    FieldReader call((*calls)[i], absl::StrCat(message.Path("tool_calls"), "[", i, "]"),
                     message.error());
    const std::string id = call.NeedText("id");
    if (const auto type = call.Text("type"); type.value_or("function") != "function")
      call.Fail("type", absl::StrCat("must be function, not ", QuoteForMessage(*type)));
    // Of a stream, and what other providers add.
    call.NoEffect({"index", "extra_content", "provider_specific_fields"});
    const Json* const json = call.Object("function");
    if (json == nullptr) {
      call.Fail("function", "must be given");
      return;
    }
    FieldReader function(*json, call.Path("function"), message.error());
    const std::string name = function.NeedText("name");
    messages->AddCallOf(function, id, name);
    // What OpenAI's client adds for its user, and LiteLLM of other providers.
    function.NoEffect({"parsed_arguments", "provider_specific_fields"});
    function.Finish();
    call.Finish();
  }
}

void ReadChatAssistant(FieldReader& message, std::string text, MessageList* messages) {
  if (const auto refusal = message.Text("refusal"); refusal.has_value()) text += *refusal;
  Json& added = messages->Add("assistant", std::move(text));
  // The second name is what some other servers call it.
  std::optional<std::string> reasoning = message.Text("reasoning_content");
  const std::optional<std::string> other_name = message.Text("reasoning");
  if (!reasoning.has_value()) reasoning = other_name;
  if (reasoning.has_value()) added["reasoning_content"] = *std::move(reasoning);
  if (const auto name = message.Text("name"); name.has_value()) added["name"] = *name;
  ReadChatCalls(message, messages);
  message.Refuse("audio");
  message.Refuse("function_call", "is not supported: use tool_calls");
  // LiteLLM's thinking_blocks repeat reasoning_content.
  message.NoEffect({"annotations", "reasoning_details", "thinking_blocks", "parsed"});
}

// @openai/agents repeats the members of an assistant's message in its part: "role",
// "reasoning_content" and so on. They go back to where they came from; where the message says
// something else they stay, to be refused. None for any other message.
std::optional<JsonDocument> WithoutRepeatedMembers(const Json& json) {
  constexpr size_t kMostMembers = 16;
  const Json& content = JsonMember(json, "content");
  if (!content.is_array() || content.size() != 1 || content[0].size() > kMostMembers ||
      JsonMember(content[0], "role") != "assistant")
    return std::nullopt;
  JsonDocument message(json), part(Json::object());
  for (const auto& [key, value] : content[0].items()) {
    const bool is_of_part = key == "type" || key == "text";
    const bool differs = !is_of_part && message->contains(key) && (*message)[key] != value;
    (is_of_part || differs ? *part : *message)[key] = value;
  }
  (*message)["content"] = Json::array({*std::move(part)});
  return message;
}

void ReadChatMessage(const Json& json, const std::string& path, absl::Status* error,
                     MessageList* messages) {
  const std::optional<JsonDocument> unrepeated = WithoutRepeatedMembers(json);
  FieldReader message(unrepeated.has_value() ? **unrepeated : json, path, error);
  const std::string role =
      message.Choice("role", {"system", "developer", "user", "assistant", "tool"}).value_or("");
  if (role.empty()) return message.Fail("role", "must be given");
  const Json* const content = message.Find("content");
  if (content == nullptr && role != "assistant") return message.Fail("content", "must be given");
  const auto read = role == "tool" ? ReadResultTexts : ReadTexts;
  std::string text = content == nullptr ? "" : read(*content, message.Path("content"), error);
  if (role == "assistant") {
    ReadChatAssistant(message, std::move(text), messages);
  } else if (role == "tool") {
    const std::string id = message.NeedText("tool_call_id");
    if (message.Bool("is_error").value_or(false)) text = ErrorResult(text);
    messages->AddResult(id, std::move(text), message.Text("name").value_or(""));
  } else {
    Json& added = messages->Add(role, std::move(text));
    if (const auto name = message.Text("name"); name.has_value()) added["name"] = *name;
  }
  // Other servers' ids of messages, marks for their caches, and what LiteLLM keeps of them.
  message.NoEffect({"id", "cache_control", "provider_specific_fields"});
  message.Finish();
}

void ReadChatMessages(FieldReader& body, Call* call) {
  const Json* const list = body.NeedList("messages");
  if (list == nullptr) return;
  if (list->empty()) body.Fail("messages", "must not be empty");
  MessageList messages(body.error());
  for (size_t i = 0; i < list->size() && body.error()->ok(); ++i)
    ReadChatMessage((*list)[i], absl::StrCat("messages[", i, "]"), body.error(), &messages);
  call->messages = messages.Take();
}

void ReadChatTool(const Json& json, const std::string& path, absl::Status* error, ToolList* tools) {
  FieldReader tool(json, path, error);
  const std::string type = tool.NeedText("type");
  if (type != "function")
    tool.Fail("type", absl::StrCat("must be function, not ", QuoteForMessage(type)));
  const Json* const definition = tool.Object("function");
  if (definition == nullptr) return tool.Fail("function", "must be given");
  FieldReader function(*definition, tool.Path("function"), error);
  const std::string name = function.NeedText("name");
  const std::optional<std::string> description = function.Text("description");
  tools->Add(function.Path("name"), name, description, function.Object("parameters"),
             ToolList::StrictOf(function));
  function.Finish();
  tool.NoEffect({"cache_control"});
  tool.Finish();
}

void ReadChatTools(FieldReader& body, Call* call) {
  ToolList tools(call, body.error());
  const Json* const list = body.List("tools");
  for (size_t i = 0; list != nullptr && i < list->size() && body.error()->ok(); ++i)
    ReadChatTool((*list)[i], absl::StrCat("tools[", i, "]"), body.error(), &tools);
  call->one_call = !body.Bool("parallel_tool_calls").value_or(true);
  tools.Finish(ReadToolChoice(body, call));
}

void ReadChatFormat(FieldReader& body, Call* call) {
  const Json* const json = body.Object("response_format");
  if (json == nullptr) return;
  FieldReader format(*json, "response_format", body.error());
  ReadFormat(format, "json_schema", call);
}

void ReadChatLogprobs(FieldReader& body, Call* call) {
  call->logprobs = body.Bool("logprobs").value_or(false);
  const int64_t top = body.Integer("top_logprobs", 0, kMostTopLogprobs).value_or(0);
  if (top > 0 && !call->logprobs) body.Fail("top_logprobs", "needs logprobs to be true");
  call->top_logprobs = static_cast<size_t>(top);
}

}  // namespace

void ParseChatCompletions(FieldReader& body, Call* call) {
  ReadChatMessages(body, call);
  ReadChatTools(body, call);
  ReadTemplateVariables(body, call);
  SetEffort(ReadEffort(body, "reasoning_effort"), call);
  ReadOtherThinking(body, call);
  SetVerbosity(body.Choice("verbosity", {"low", "medium", "high"}), call);
  ReadSampling(body, call);
  ReadMaxTokens(body, "max_tokens", /*least=*/1, call);
  ReadMaxTokens(body, "max_completion_tokens", /*least=*/1, call);  // where both are there this one
  ReadStopTexts(body, "stop", call);
  ReadChoices(body, call);
  ReadChatLogprobs(body, call);
  ReadStream(body, call);
  ReadChatFormat(body, call);
  ReadGrammar(body, call);
  call->ignore_eos = body.Bool("ignore_eos").value_or(false);
  AcceptBookkeeping(body);
  body.Refuse("store", "cannot be true: this server stores no answers");
  for (const char* key : {"audio", "prediction", "web_search_options", "moderation"})
    body.Refuse(key);
  for (const char* key : {"guided_json", "guided_regex", "guided_choice", "guided_grammar"})
    body.Refuse(key, "is not supported: use response_format or grammar");
  body.Refuse("n_predict", "is not supported: use max_tokens");
  body.Refuse("continue_final_message",
              "cannot be true: each answer is a message of its own; /v1/completions goes on from a "
              "text");
  if (!body.Bool("add_generation_prompt").value_or(true))
    body.Fail("add_generation_prompt", "cannot be false: an answer is what the model begins then");
  for (const char* key : {"functions", "function_call"})
    body.Refuse(key, "is not supported: use tools and tool_choice");
  const Json* const modalities = body.Find("modalities");
  if (modalities != nullptr && *modalities != Json::array({"text"}))
    body.Fail("modalities", "must be [\"text\"]: this server answers with nothing else");
}

}  // namespace inlay::serve
