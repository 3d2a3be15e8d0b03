#include "serve/service/session_body.h"

#include <initializer_list>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/xxh64.h"
#include "serve/api/field_reader.h"
#include "serve/api/parse_call.h"
#include "serve/api/request_json.h"

namespace inlay::serve {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr size_t kLongestKey = 200;

// What a request's body holds; an empty one holds {}.
absl::StatusOr<JsonDocument> ParseBody(absl::string_view body) {
  if (body.empty()) return JsonDocument(Json::object());
  return ParseRequestJson("the body", body);
}

std::optional<uint64_t> ReadVersion(FieldReader& body, absl::string_view key) {
  const std::optional<int64_t> version = body.Integer(key, 0, kMost);
  if (!version.has_value()) return std::nullopt;
  return static_cast<uint64_t>(*version);
}

SessionPlace ReadPlace(FieldReader& body) {
  SessionPlace place;
  place.version = ReadVersion(body, "version");
  place.position = ReadVersion(body, "position");
  if (place.version.has_value() && place.position.has_value())
    body.Fail("position", "cannot be given with version: each of them names a place");
  return place;
}

// The members of `from` that have these names, which are null there from now on.
JsonDocument TakeMembers(Json& from, std::initializer_list<const char*> names) {
  JsonDocument taken(Json::object());
  taken->get_ref<Json::object_t&>().reserve(names.size());  // an object that grows copies them
  for (const char* name : names) {
    const auto member = from.find(name);
    if (member == from.end()) continue;
    Json& value = (*taken)[name];
    value = std::move(*member);
  }
  return taken;
}

using Members = std::map<absl::string_view, const Json*>;  // of an object, by their names

Members MembersOf(const Json& object) {
  Members members;
  for (const auto& [name, value] : object.get_ref<const Json::object_t&>())
    members.emplace(name, &value);
  return members;
}

void AppendSorted(const Json& value, std::string* text);

void AppendMembers(const Members& members, std::string* text) {
  text->push_back('{');
  for (const auto& [name, value] : members) {
    if (text->back() != '{') text->push_back(',');
    absl::StrAppend(text, Json(std::string(name)).dump(), ":");
    AppendSorted(*value, text);
  }
  text->push_back('}');
}

// Appends the text of a value, with the members of objects in the order of their names.
void AppendSorted(const Json& value, std::string* text) {
  if (value.is_object()) return AppendMembers(MembersOf(value), text);
  if (!value.is_array()) {
    text->append(value.dump());
    return;
  }
  text->push_back('[');
  for (const Json& item : value) {
    if (text->back() != '[') text->push_back(',');
    AppendSorted(item, text);
  }
  text->push_back(']');
}

// The same for two requests that ask for the same turn. How the reply is sent is not what is asked
// for, nor is the order of members. Sessions keep it, so that it must not change.
uint64_t HashOf(uint64_t parent, const Json& request) {
  Members asked = MembersOf(request);
  for (const char* key : {"stream", "stream_options"}) asked.erase(key);
  std::string meaning = absl::StrCat(parent, " ");
  AppendMembers(asked, &meaning);
  return Xxh64Of(meaning.data(), meaning.size());
}

}  // namespace

absl::StatusOr<Session> ParseNewSession(absl::string_view text, const CallDefaults& defaults) {
  INLAY_ASSIGN_OR_RETURN(JsonDocument json, ParseBody(text));
  absl::Status error;
  FieldReader body(*json, "", &error);
  Session session;
  session.name = body.Text("name").value_or("");
  const std::optional<std::string> system = body.Text("system");
  const Json* const messages = body.List("messages");
  const bool has_messages = messages != nullptr && !messages->empty();
  for (const char* key : {"tools", "chat_template_kwargs", "reasoning_effort", "verbosity"})
    body.Find(key);
  body.Finish();
  INLAY_RETURN_IF_ERROR(error);
  // The rest means what it means in chat/completions, where a message must be there.
  JsonDocument rest = TakeMembers(
      *json, {"messages", "tools", "chat_template_kwargs", "reasoning_effort", "verbosity"});
  if (!has_messages) (*rest)["messages"] = Json::array({{{"role", "user"}, {"content", ""}}});
  INLAY_ASSIGN_OR_RETURN(Call call,
                         ReadCall(Protocol::kChatCompletions, *rest, {.defaults = defaults}));
  if (system.has_value()) session.messages->push_back({{"role", "system"}, {"content", *system}});
  if (has_messages) {
    for (Json& message : *call.messages) session.messages->push_back(std::move(message));
  }
  session.tools = std::move(call.tools);
  session.variables = std::move(call.template_variables);
  return session;
}

absl::StatusOr<TurnBody> ParseTurn(absl::string_view text) {
  INLAY_ASSIGN_OR_RETURN(JsonDocument document, ParseBody(text));
  Json& json = *document;
  absl::Status error;
  FieldReader body(json, "", &error);
  TurnBody turn;
  if (body.Find("parent") == nullptr)
    body.Fail("parent", "must be given: the version of the session that the turn follows");
  turn.parent = ReadVersion(body, "parent").value_or(0);
  turn.idempotency_key = body.Text("idempotency_key").value_or("");
  if (turn.idempotency_key.size() > kLongestKey) {
    body.Fail("idempotency_key",
              absl::StrCat("has ", turn.idempotency_key.size(), " bytes, more than ", kLongestKey));
  }
  turn.background = body.Bool("background").value_or(false);
  size_t inputs = 0;
  for (const char* key : {"content", "messages", "prompt", "tokens"})
    inputs += body.Find(key) != nullptr ? 1 : 0;
  if (inputs != 1)
    body.Fail("content", "or messages, prompt or tokens must be given, and only one of them");
  body.List("tokens");
  body.Refuse("tools", "must be given when the session is made");
  INLAY_RETURN_IF_ERROR(error);
  for (const char* key : {"parent", "idempotency_key", "background", "tools"}) json.erase(key);
  for (const char* key : {"content", "prompt", "tokens"}) {
    if (JsonMember(json, key).is_null()) json.erase(key);  // as good as left out
  }
  turn.raw = json.contains("prompt") || json.contains("tokens");
  if (json.contains("content")) {
    json["messages"] = Json::array({{{"role", "user"}, {"content", std::move(json["content"])}}});
    json.erase("content");
  } else if (json.contains("tokens")) {
    json["prompt"] = std::move(json["tokens"]);
    json.erase("tokens");
  }
  turn.hash = HashOf(turn.parent, json);
  turn.rest = std::move(document);
  return turn;
}

absl::StatusOr<Call> CallOf(const TurnBody& turn, const Session& session,
                            const CallDefaults& defaults) {
  CallDefaults of_turns = defaults;
  of_turns.template_variables = Json::object();  // the session has them
  JsonDocument rest = turn.rest;
  if (!turn.raw && !session.tools->is_null()) (*rest)["tools"] = *session.tools;
  INLAY_ASSIGN_OR_RETURN(
      Call call, ReadCall(turn.raw ? Protocol::kCompletions : Protocol::kChatCompletions, *rest,
                          {.defaults = of_turns}));
  if (call.choices != 1)
    return absl::InvalidArgumentError("n must be 1: a turn has one answer (fork for others)");
  if (call.logprobs) return absl::InvalidArgumentError("logprobs is not supported in a session");
  if (call.shape.has_value())
    return absl::InvalidArgumentError("a format of the answer is not supported in a session");
  if (call.tool_choice != ToolChoice{})
    return absl::InvalidArgumentError("tool_choice can only be auto or none in a session");
  if (call.echo) return absl::InvalidArgumentError("echo is not supported in a session");
  if (turn.raw && call.prompts.size() != 1)
    return absl::InvalidArgumentError("prompt must be one prompt");
  if (turn.raw && JsonMember(*rest, "max_tokens").is_null()) call.max_tokens = defaults.max_tokens;
  return call;
}

absl::StatusOr<ForkBody> ParseFork(absl::string_view text) {
  INLAY_ASSIGN_OR_RETURN(const JsonDocument json, ParseBody(text));
  absl::Status error;
  FieldReader body(*json, "", &error);
  ForkBody fork;
  fork.name = body.Text("name").value_or("");
  fork.place = ReadPlace(body);
  body.Finish();
  INLAY_RETURN_IF_ERROR(error);
  return fork;
}

absl::StatusOr<RewindBody> ParseRewind(absl::string_view text) {
  INLAY_ASSIGN_OR_RETURN(const JsonDocument json, ParseBody(text));
  absl::Status error;
  FieldReader body(*json, "", &error);
  RewindBody rewind;
  rewind.parent = ReadVersion(body, "parent");
  rewind.place = ReadPlace(body);
  if (!rewind.place.version.has_value() && !rewind.place.position.has_value())
    body.Fail("version", "or position must be given: where the session goes back to");
  body.Finish();
  INLAY_RETURN_IF_ERROR(error);
  return rewind;
}

}  // namespace inlay::serve
