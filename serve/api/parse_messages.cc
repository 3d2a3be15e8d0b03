// Anthropic: POST /v1/messages and /v1/messages/count_tokens.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "serve/api/call_fields.h"
#include "serve/api/message_list.h"
#include "serve/api/parsers.h"
#include "serve/api/reply_parts.h"
#include "serve/api/sealed_reasoning.h"

namespace inlay::serve {
namespace {

// Puts the blocks of one message into messages: an assistant's into one, a user's texts into one
// and the results of calls into one each, in their order.
class BlockReader {
 public:
  BlockReader(const std::string& role, absl::Status* error, MessageList* messages)
      : is_assistant_(role == "assistant"), role_(role), error_(error), messages_(messages) {}

  void Read(const Json& json, const std::string& path) {
    FieldReader block(json, path, error_);
    const std::string type = block.NeedText("type");
    if (type == "text") {
      AddText(block.NeedText("text"));
      block.NoEffect({"citations"});
    } else if (type == "tool_result" && !is_assistant_) {
      ReadResult(block);
    } else if (type == "tool_use" && is_assistant_) {
      ReadUse(block);
    } else if (type == "thinking" && is_assistant_) {
      std::string thought = block.NeedText("thinking");
      const std::optional<std::string> signature = block.Text("signature");
      if (thought.empty() && signature.has_value())
        thought = UnsealReasoning(*signature).value_or("");
      reasoning_ = absl::StrCat(reasoning_.value_or(""), thought);
    } else {
      block.Fail("type", absl::StrCat("is ", QuoteForMessage(type),
                                      ", which this server cannot read in a message of ", role_));
    }
    block.NoEffect({"cache_control"});
    block.Finish();
  }

  void Finish() {
    if (is_assistant_) {
      AddAssistant();
    } else {
      FlushText();
    }
  }

 private:
  void AddText(const std::string& text) {
    text_ = text_.has_value() ? absl::StrCat(*text_, "\n", text) : text;
  }

  void FlushText() {
    if (text_.has_value()) messages_->Add(role_, *std::exchange(text_, std::nullopt));
  }

  void ReadResult(FieldReader& block) {
    FlushText();
    const std::string id = block.NeedText("tool_use_id");
    const Json* const content = block.Find("content");
    std::string text =
        content == nullptr ? "" : ReadResultTexts(*content, block.Path("content"), error_);
    if (block.Bool("is_error").value_or(false)) text = ErrorResult(text);
    block.Refuse("toolset_name");
    messages_->AddResult(id, std::move(text));
  }

  void ReadUse(FieldReader& block) {
    Use use = {block.NeedText("id"), block.NeedText("name"), JsonDocument(Json::object())};
    if (const Json* const input = block.Object("input"); input != nullptr)
      use.input = JsonDocument(*input);
    block.NoEffect({"caller"});
    block.Refuse("toolset_name");
    uses_.push_back(std::move(use));
  }

  void AddAssistant() {
    Json& message = messages_->Add("assistant", text_.value_or(""));
    if (reasoning_.has_value()) message["reasoning_content"] = *reasoning_;
    for (Use& use : uses_) messages_->AddCall(use.id, use.name, std::move(use.input));
  }

  struct Use {
    std::string id, name;
    JsonDocument input;
  };

  const bool is_assistant_;
  const std::string role_;
  absl::Status* const error_;
  MessageList* const messages_;
  std::optional<std::string> text_, reasoning_;
  std::vector<Use> uses_;
};

void ReadAnthropicMessage(const Json& json, const std::string& path, absl::Status* error,
                          MessageList* messages) {
  FieldReader message(json, path, error);
  const std::string role = message.Choice("role", {"user", "assistant", "system"}).value_or("");
  if (role.empty()) return message.Fail("role", "must be given");
  const Json* const content = message.Find("content");
  message.Finish();
  if (content == nullptr) return message.Fail("content", "must be given");
  if (content->is_string()) {
    messages->Add(role, content->get<std::string>());
    return;
  }
  if (!content->is_array()) {
    return message.Fail(
        "content", absl::StrCat("must be a string or a list of blocks, not ", KindOf(*content)));
  }
  BlockReader blocks(role, error, messages);
  for (size_t i = 0; i < content->size() && error->ok(); ++i)
    blocks.Read((*content)[i], absl::StrCat(message.Path("content"), "[", i, "]"));
  blocks.Finish();
}

// The system prompt, without a line for who bills (see ParseOptions).
std::optional<std::string> ReadAnthropicSystem(FieldReader& body, const ParseOptions& options) {
  const Json* system = body.Find("system");
  if (system == nullptr) return std::nullopt;
  JsonDocument rest;
  if (options.drop_billing_line && system->is_array() && !system->empty() &&
      system->front().is_object()) {
    if (absl::StartsWith(JsonString(JsonMember(system->front(), "text")),
                         "x-anthropic-billing-header:")) {
      *rest = Json(system->begin() + 1, system->end());
      system = &*rest;
    }
  }
  if (system->empty() || *system == "") return std::nullopt;
  return ReadTexts(*system, "system", body.error());
}

void ReadAnthropicMessages(FieldReader& body, const ParseOptions& options, bool counting,
                           Call* call) {
  MessageList messages(body.error());
  if (auto system = ReadAnthropicSystem(body, options); system.has_value())
    messages.Add("system", *std::move(system));
  const Json* const list = body.NeedList("messages");
  if (list == nullptr) return;
  for (size_t i = 0; i < list->size() && body.error()->ok(); ++i)
    ReadAnthropicMessage((*list)[i], absl::StrCat("messages[", i, "]"), body.error(), &messages);
  if (messages.last_role() == "assistant" && !counting) {
    body.Fail(absl::StrCat("messages[", list->size() - 1, "].role"),
              "must not be assistant: the last message cannot be the beginning of an answer");
  }
  if (messages.empty()) body.Fail("messages", "must not be empty");
  call->messages = messages.Take();
}

void ReadAnthropicTool(const Json& json, const std::string& path, absl::Status* error,
                       ToolList* tools) {
  FieldReader tool(json, path, error);
  if (const auto type = tool.Text("type"); type.value_or("custom") != "custom") {
    return tool.Fail("type", absl::StrCat("is ", QuoteForMessage(*type),
                                          ", a tool that this server does not have"));
  }
  const std::string name = tool.NeedText("name");
  const std::optional<std::string> description = tool.Text("description");
  const Json* const schema = tool.Object("input_schema");
  if (schema == nullptr) tool.Fail("input_schema", "must be given");
  tools->Add(tool.Path("name"), name, description, schema, ToolList::StrictOf(tool));
  tool.Refuse("defer_loading", "cannot be true: this server does not search for tools");
  tool.Refuse("input_examples");
  if (const Json* const callers = tool.List("allowed_callers");
      callers != nullptr && *callers != Json::array({"direct"}))
    tool.Fail("allowed_callers", "must be [\"direct\"]");
  tool.NoEffect({"cache_control", "eager_input_streaming"});
  tool.Finish();
}

ToolChoice ReadAnthropicToolChoice(FieldReader& body, Call* call) {
  ToolChoice choice;
  const Json* const json = body.Object("tool_choice");
  if (json == nullptr) return choice;
  FieldReader reader(*json, "tool_choice", body.error());
  const std::optional<std::string> type = reader.Choice("type", {"auto", "none", "any", "tool"});
  if (!type.has_value()) reader.Fail("type", "must be given");
  choice.may_call = type != "none";
  choice.must_call = type == "any" || type == "tool";
  if (type == "tool") choice.only = {reader.NeedText("name")};
  call->one_call = reader.Bool("disable_parallel_tool_use").value_or(false);
  if (type == "tool") call->one_call = true;
  reader.Finish();
  return choice;
}

void ReadAnthropicTools(FieldReader& body, Call* call) {
  ToolList tools(call, body.error());
  const Json* const list = body.List("tools");
  for (size_t i = 0; list != nullptr && i < list->size() && body.error()->ok(); ++i)
    ReadAnthropicTool((*list)[i], absl::StrCat("tools[", i, "]"), body.error(), &tools);
  tools.Finish(ReadAnthropicToolChoice(body, call));
}

void ReadAnthropicThinking(FieldReader& body, Call* call) {
  const Json* const json = body.Object("thinking");
  if (json == nullptr) {
    // In this protocol a model thinks only where it is asked to: clients take the first block for
    // the text, and a small max_tokens is meant for it.
    call->template_variables->emplace("enable_thinking", false);
    return;
  }
  FieldReader thinking(*json, "thinking", body.error());
  const std::optional<std::string> type =
      thinking.Choice("type", {"enabled", "adaptive", "disabled"});
  if (!type.has_value()) thinking.Fail("type", "must be given");
  call->template_variables->emplace("enable_thinking", type != "disabled");
  // Heeded by chat templates that know a budget.
  const auto budget = thinking.Integer("budget_tokens", 1, kMostMaxTokens);
  if (budget.has_value()) call->template_variables->emplace("thinking_budget", *budget);
  call->hide_reasoning = thinking.Choice("display", {"summarized", "omitted"}) == "omitted";
  thinking.Finish();
}

void ReadAnthropicOutput(FieldReader& body, Call* call) {
  // Its name before it became a part of output_config; what stands there counts where both do.
  if (const Json* const format = body.Object("output_format"); format != nullptr) {
    FieldReader reader(*format, "output_format", body.error());
    ReadFormat(reader, nullptr, call);
  }
  const Json* const json = body.Object("output_config");
  if (json == nullptr) return;
  FieldReader output(*json, "output_config", body.error());
  SetEffort(output.Choice("effort", {"low", "medium", "high", "xhigh", "max"}), call);
  if (const Json* const format = output.Object("format"); format != nullptr) {
    FieldReader reader(*format, "output_config.format", body.error());
    ReadFormat(reader, nullptr, call);
  }
  output.Finish();
}

// Whether an edit of a conversation leaves no thoughts out.
bool KeepsAll(const Json& edit) {
  const Json& keep = JsonMember(edit, "keep");
  return edit.size() == 2 && JsonMember(edit, "type") == "clear_thinking_20251015" &&
         (keep == "all" || keep == Json{{"type", "all"}});
}

// What to leave out of a conversation. Claude Code asks for all thoughts to be kept, which is what
// happens anyhow.
void ReadAnthropicContextManagement(FieldReader& body) {
  const Json* const json = body.Object("context_management");
  if (json == nullptr) return;
  FieldReader management(*json, "context_management", body.error());
  const Json* const edits = management.List("edits");
  for (size_t i = 0; edits != nullptr && i < edits->size(); ++i) {
    if (!KeepsAll((*edits)[i]))
      management.Fail(absl::StrCat("edits[", i, "]"),
                      R"(must be {"type":"clear_thinking_20251015","keep":"all"}: this server )"
                      "leaves nothing out of a conversation");
  }
  management.Finish();
}

}  // namespace

void ParseMessages(FieldReader& body, const ParseOptions& options, bool counting, Call* call) {
  ReadAnthropicMessages(body, options, counting, call);
  ReadAnthropicTools(body, call);
  ReadTemplateVariables(body, call);
  ReadAnthropicThinking(body, call);
  ReadAnthropicOutput(body, call);
  ReadAnthropicContextManagement(body);
  ReadSampling(body, call);
  ReadStopTexts(body, "stop_sequences", call);
  if (!ReadMaxTokens(body, "max_tokens", /*least=*/1, call) && !counting)
    body.Fail("max_tokens", "must be given");
  call->stream = body.Bool("stream").value_or(false);
  body.NoEffect({"metadata", "service_tier", "speed", "cache_control", "inference_geo",
                 "diagnostics", "user_profile_id", "workspace_id"});
  for (const char* key : {"container", "mcp_servers"}) body.Refuse(key);
  // With this code Anthropic's client goes on without.
  const bool was_ok = body.error()->ok();
  body.Refuse("thread", "is not supported: this server stores no messages, so send all of them");
  if (was_ok && !body.error()->ok()) SetErrorCode("thread_unsupported_request", body.error());
}

}  // namespace inlay::serve
