// OpenAI: POST /v1/responses.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "serve/api/call_fields.h"
#include "serve/api/message_list.h"
#include "serve/api/parsers.h"
#include "serve/api/sealed_reasoning.h"

namespace inlay::serve {
namespace {

// What a chat template calls a function of a namespace.
std::string FullName(absl::string_view name_space, absl::string_view name) {
  return absl::StrCat(name_space, ".", name);
}

// Puts the items of a request into messages: what the model thought, said and called in one turn
// becomes one message of the assistant.
class ItemReader {
 public:
  ItemReader(absl::Status* error, MessageList* messages) : error_(error), messages_(messages) {}

  void Read(const Json& json, const std::string& path) {
    FieldReader item(json, path, error_);
    // Messages may come without a type.
    const std::string type = item.Text("type").value_or("message");
    if (type == "message") {
      ReadMessage(item);
    } else if (type == "reasoning") {
      ReadReasoning(item);
    } else if (type == "function_call") {
      ReadCall(item);
    } else if (type == "function_call_output") {
      ReadResult(item);
    } else if (type == "item_reference") {
      item.Fail("type",
                "is 'item_reference', but this server stores no items: send each in full, with "
                "store set to false (in the AI SDK: providerOptions.openai.store)");
    } else {
      item.Fail("type", absl::StrCat("is ", QuoteForMessage(type),
                                     ", an item that this server cannot read"));
    }
    item.NoEffect({"id", "status", "phase", "caller", "async", "parsed_arguments"});
    item.Finish();
  }

  // Thoughts that nothing followed.
  void Finish() {
    if (reasoning_.has_value()) AddAssistant("");
  }

 private:
  void ReadMessage(FieldReader& item) {
    const std::string role =
        item.Choice("role", {"user", "assistant", "system", "developer"}).value_or("");
    const Json* const content = item.Find("content");
    if (role.empty()) return item.Fail("role", "must be given");
    if (content == nullptr) return item.Fail("content", "must be given");
    std::string text = ReadTexts(*content, item.Path("content"), error_);
    if (role == "assistant") return AddAssistant(std::move(text));
    Finish();
    messages_->Add(role, std::move(text));
  }

  // The text itself, what this server has made of it for safekeeping, or the summaries of others.
  void ReadReasoning(FieldReader& item) {
    const Json* const content = item.List("content");
    const Json* const summary = item.List("summary");
    const std::optional<std::string> sealed = item.Text("encrypted_content");
    std::optional<std::string> text;
    if (content != nullptr && !content->empty()) {
      text = ReadTexts(*content, item.Path("content"), error_);
    } else if (sealed.has_value()) {
      text = UnsealReasoning(*sealed);
    }
    if (!text.has_value() && summary != nullptr && !summary->empty())
      text = ReadTexts(*summary, item.Path("summary"), error_);
    if (!text.has_value() && sealed.has_value())
      item.Fail("encrypted_content", "is not from this server, which therefore cannot read it");
    if (text.has_value()) reasoning_ = absl::StrCat(reasoning_.value_or(""), *text);
  }

  void ReadCall(FieldReader& item) {
    const std::string id = item.NeedText("call_id");
    std::string name = item.NeedText("name");
    if (const auto name_space = item.Text("namespace"); name_space.has_value())
      name = FullName(*name_space, name);
    if (reasoning_.has_value() || messages_->last_role() != "assistant") AddAssistant("");
    messages_->AddCallOf(item, id, name);
  }

  void ReadResult(FieldReader& item) {
    const std::string id = item.NeedText("call_id");
    const Json* const output = item.Find("output");
    if (output == nullptr) return item.Fail("output", "must be given");
    std::string name = item.Text("name").value_or("");
    if (const auto name_space = item.Text("namespace"); name_space.has_value() && !name.empty())
      name = FullName(*name_space, name);
    Finish();
    messages_->AddResult(id, ReadResultTexts(*output, item.Path("output"), error_),
                         std::move(name));
  }

  void AddAssistant(std::string text) {
    Json& message = messages_->Add("assistant", std::move(text));
    if (reasoning_.has_value())
      message["reasoning_content"] = *std::exchange(reasoning_, std::nullopt);
  }

  absl::Status* const error_;
  MessageList* const messages_;
  std::optional<std::string> reasoning_;  // of the next message of the assistant
};

void ReadResponsesInput(FieldReader& body, Call* call) {
  MessageList messages(body.error());
  const std::optional<std::string> instructions = body.Text("instructions");
  if (!instructions.value_or("").empty()) messages.Add("system", *instructions);
  const Json* const input = body.Find("input");
  if (input == nullptr) return body.Fail("input", "must be given");
  if (input->is_string()) {
    messages.Add("user", input->get<std::string>());
  } else if (!input->is_array()) {
    return body.Fail("input",
                     absl::StrCat("must be a string or a list of items, not ", KindOf(*input)));
  } else if (input->empty()) {
    return body.Fail("input", "must not be empty");
  } else {
    ItemReader items(body.error(), &messages);
    for (size_t i = 0; i < input->size() && body.error()->ok(); ++i)
      items.Read((*input)[i], absl::StrCat("input[", i, "]"));
    items.Finish();
  }
  call->messages = messages.Take();
}

class ToolReader {
 public:
  ToolReader(Call* call, absl::Status* error) : call_(call), error_(error), tools_(call, error) {}

  void Read(const Json& json, const std::string& path) {
    FieldReader tool(json, path, error_);
    const std::string type = tool.NeedText("type");
    if (type == "function") {
      ReadFunction(tool, nullptr);
    } else if (type == "namespace") {
      ReadNamespace(tool);
    } else if (type == "web_search") {
      ReadWebSearch(tool);
    } else {
      tool.Fail("type", absl::StrCat("is ", QuoteForMessage(type),
                                     ", a tool that this server does not have"));
    }
    tool.Finish();
  }

  void Finish(ToolChoice choice) { tools_.Finish(std::move(choice)); }

 private:
  struct Namespace {
    std::string name, description;
  };

  // A function is described to the model with what its namespace says of all of them.
  void ReadFunction(FieldReader& tool, const Namespace* name_space) {
    std::string name = tool.NeedText("name");
    std::optional<std::string> description = tool.Text("description");
    if (name_space != nullptr) {
      const std::string full_name = FullName(name_space->name, name);
      call_->namespaced_tools[full_name] = {name_space->name, std::move(name)};
      name = full_name;
      if (!name_space->description.empty())
        description = absl::StrCat(name_space->description, "\n", description.value_or(""));
    }
    tools_.Add(tool.Path("name"), name, description, tool.Object("parameters"),
               ToolList::StrictOf(tool, ToolList::Strict::kIfPossible));
    tool.Refuse("async");
    tool.Refuse("output_schema");
    tool.Refuse("defer_loading", "cannot be true: this server does not search for tools");
    if (const Json* const callers = tool.List("allowed_callers");
        callers != nullptr && *callers != Json::array({"direct"}))
      tool.Fail("allowed_callers", "must be [\"direct\"]");
  }

  void ReadNamespace(FieldReader& tool) {
    const Namespace name_space = {tool.NeedText("name"), tool.Text("description").value_or("")};
    const Json* const functions = tool.NeedList("tools");
    for (size_t i = 0; functions != nullptr && i < functions->size() && error_->ok(); ++i) {
      FieldReader function((*functions)[i], absl::StrCat(tool.Path("tools"), "[", i, "]"), error_);
      if (const std::string type = function.NeedText("type"); type != "function")
        function.Fail("type", absl::StrCat("must be function, not ", QuoteForMessage(type)));
      ReadFunction(function, &name_space);
      function.Finish();
    }
  }

  // Codex declares a search that must not leave the server whether there is one or not. Here it
  // would find nothing, so the model is not told of it.
  void ReadWebSearch(FieldReader& tool) {
    if (tool.Bool("external_web_access").value_or(true))
      tool.Fail("type",
                "is 'web_search', a tool that this server does not have: leave it out, or set its "
                "external_web_access to false (in Codex's config.toml: web_search = \"disabled\")");
    tool.NoEffect({"filters", "search_context_size", "search_content_types", "user_location"});
  }

  Call* const call_;
  absl::Status* const error_;
  ToolList tools_;
};

void ReadResponsesTools(FieldReader& body, Call* call) {
  ToolReader tools(call, body.error());
  const Json* const list = body.List("tools");
  for (size_t i = 0; list != nullptr && i < list->size() && body.error()->ok(); ++i)
    tools.Read((*list)[i], absl::StrCat("tools[", i, "]"));
  call->one_call = !body.Bool("parallel_tool_calls").value_or(true);
  tools.Finish(ReadToolChoice(body, call));
}

void ReadResponsesReasoning(FieldReader& body, Call* call) {
  const Json* const json = body.Object("reasoning");
  if (json == nullptr) return;
  FieldReader reasoning(*json, "reasoning", body.error());
  SetEffort(ReadEffort(reasoning, "effort"), call);
  reasoning.Choice("mode", {"standard"});
  reasoning.Choice("context", {"auto"});
  // There are no summaries: what the model thinks is in the reply as it is.
  reasoning.NoEffect({"summary", "generate_summary"});
  reasoning.Finish();
}

void ReadResponsesText(FieldReader& body, Call* call) {
  const Json* const json = body.Object("text");
  if (json == nullptr) return;
  FieldReader text(*json, "text", body.error());
  SetVerbosity(text.Choice("verbosity", {"low", "medium", "high"}), call);
  if (const Json* const member = text.Object("format"); member != nullptr) {
    FieldReader format(*member, "text.format", body.error());
    ReadFormat(format, nullptr, call);
  }
  text.Finish();
}

// What else the reply is to have.
void ReadResponsesInclude(FieldReader& body, Call* call) {
  // Of items and tools that this server does not have.
  constexpr absl::string_view kNeverThere[] = {
      "file_search_call.results",       "web_search_call.results",
      "web_search_call.action.sources", "message.input_image.image_url",
      "code_interpreter_call.outputs",  "computer_call_output.output.image_url"};
  const Json* const include = body.List("include");
  for (size_t i = 0; include != nullptr && i < include->size(); ++i) {
    const Json& item = (*include)[i];
    const std::string name = item.is_string() ? item.get<std::string>() : "";
    if (name == "reasoning.encrypted_content") {
      call->sealed_reasoning = true;
    } else if (std::find(std::begin(kNeverThere), std::end(kNeverThere), name) ==
               std::end(kNeverThere)) {
      body.Fail(absl::StrCat("include[", i, "]"),
                absl::StrCat("is ", DumpJson(item), ", which is not supported"));
    }
  }
}

void RefuseStored(FieldReader& body) {
  for (const char* key : {"previous_response_id", "conversation"})
    body.Refuse(key, "is not supported: this server stores no answers, so send the whole input");
  body.Refuse("store", "cannot be true: this server stores no answers");
  body.Refuse("background", "cannot be true: this server stores no answers");
  body.Refuse("prompt", "is not supported: this server stores no prompts");
}

// What a response says of its request, null where the request says nothing.
void Repeat(FieldReader& body, Call* call) {
  const auto repeat = [&](const char* key, const Json& otherwise) {
    const Json* const value = body.Find(key);
    (*call->repeated)[key] = value == nullptr ? otherwise : *value;
  };
  for (const char* key : {"instructions", "max_output_tokens", "max_tool_calls", "temperature",
                          "top_p", "prompt_cache_key", "safety_identifier", "user"})
    repeat(key, nullptr);
  repeat("metadata", Json::object());
  repeat("parallel_tool_calls", true);
  repeat("reasoning", {{"effort", nullptr}, {"summary", nullptr}});
  repeat("text", {{"format", {{"type", "text"}}}});
  repeat("tool_choice", "auto");
  repeat("tools", Json::array());
  repeat("truncation", "disabled");
  (*call->repeated)["service_tier"] = "default";
  (*call->repeated)["top_logprobs"] = 0;
}

}  // namespace

void ParseResponses(FieldReader& body, Call* call) {
  ReadResponsesInput(body, call);
  ReadResponsesTools(body, call);
  ReadTemplateVariables(body, call);
  ReadResponsesReasoning(body, call);
  ReadResponsesText(body, call);
  ReadSampling(body, call);
  ReadMaxTokens(body, "max_output_tokens", /*least=*/1, call);
  ReadResponsesInclude(body, call);
  ReadStream(body, call);
  AcceptBookkeeping(body);
  // Of tools that this server does not have; and what Codex says of itself.
  body.NoEffect({"max_tool_calls", "client_metadata"});
  RefuseStored(body);
  body.Choice("truncation", {"disabled"});
  body.Integer("top_logprobs", 0, 0);
  for (const char* key : {"context_management", "moderation"}) body.Refuse(key);
  Repeat(body, call);
}

}  // namespace inlay::serve
