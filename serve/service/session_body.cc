#include "serve/service/session_body.h"

#include <initializer_list>
#include <limits>
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
absl::StatusOr<Json> ParseBody(absl::string_view body) {
  if (body.empty()) return Json(Json::object());
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

// The members of `from` that have these names.
Json Members(const Json& from, std::initializer_list<const char*> names) {
  Json members = Json::object();
  for (const char* name : names) {
    if (from.contains(name)) members[name] = from[name];
  }
  return members;
}

}  // namespace

absl::StatusOr<Session> ParseNewSession(absl::string_view text, const CallDefaults& defaults) {
  INLAY_ASSIGN_OR_RETURN(const JsonDocument json, ParseBody(text));
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
  Json rest = Members(*json, {"tools", "chat_template_kwargs", "reasoning_effort", "verbosity"});
  rest["messages"] = has_messages ? *messages : Json::array({{{"role", "user"}, {"content", ""}}});
  INLAY_ASSIGN_OR_RETURN(
      Call call, ParseCall(Protocol::kChatCompletions, DumpJson(rest), {.defaults = defaults}));
  if (system.has_value()) session.messages.push_back({{"role", "system"}, {"content", *system}});
  if (has_messages) {
    for (Json& message : call.messages) session.messages.push_back(std::move(message));
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
  turn.raw = json.contains("prompt") || json.contains("tokens");
  if (json.contains("content")) {
    json["messages"] = Json::array({{{"role", "user"}, {"content", json["content"]}}});
    json.erase("content");
  } else if (json.contains("tokens")) {
    json["prompt"] = json["tokens"];
    json.erase("tokens");
  }
  // How the reply is sent is not what is asked for, nor is the order of members.
  Json asked = json;
  for (const char* key : {"stream", "stream_options"}) asked.erase(key);
  const std::string meaning = absl::StrCat(turn.parent, " ", nlohmann::json(asked).dump());
  turn.hash = Xxh64Of(meaning.data(), meaning.size());
  turn.rest = std::move(json);
  return turn;
}

absl::StatusOr<Call> CallOf(const TurnBody& turn, const Session& session,
                            const CallDefaults& defaults) {
  CallDefaults of_turns = defaults;
  of_turns.template_variables = Json::object();  // the session has them
  Json rest = turn.rest;
  if (!turn.raw && !session.tools.is_null()) rest["tools"] = session.tools;
  INLAY_ASSIGN_OR_RETURN(Call call,
                         ParseCall(turn.raw ? Protocol::kCompletions : Protocol::kChatCompletions,
                                   DumpJson(rest), {.defaults = of_turns}));
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
  if (turn.raw && rest.value("max_tokens", Json()).is_null()) call.max_tokens = defaults.max_tokens;
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
