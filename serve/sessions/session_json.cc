#include "serve/sessions/session_json.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "gemma_like/generation/generation.h"
#include "serve/api/document_reader.h"
#include "serve/api/options_json.h"

namespace inlay::serve {
namespace {

using Kind = SessionTurn::Kind;

constexpr absl::string_view kObject = "inlay.session";
constexpr int kFormat = 1;

constexpr std::pair<Kind, absl::string_view> kKinds[] = {{Kind::kAnswer, "answer"},
                                                         {Kind::kContinuation, "continuation"},
                                                         {Kind::kRaw, "raw"},
                                                         {Kind::kCut, "cut"}};

Kind KindOfTurn(const DocumentReader& turn) {
  std::vector<absl::string_view> names;
  for (const auto& [kind, name] : kKinds) names.push_back(name);
  return kKinds[turn.Choice("kind", names)].first;
}

// The reader of element `i` of the list `key`.
DocumentReader ElementOf(const DocumentReader& json, absl::string_view key, size_t i) {
  return {json.List(key)[i], absl::StrCat(json.Path(key), "[", i, "]"), json.error()};
}

JsonDocument MessagesOf(const DocumentReader& json) {
  const Json& messages = json.List("messages");
  for (size_t i = 0; i < messages.size(); ++i) ElementOf(json, "messages", i).Text("role");
  return JsonDocument(messages);
}

Json StoredUsage(const ReplyUsage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"cached_tokens", usage.cached_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"reasoning_tokens", usage.reasoning_tokens}};
}

ReplyUsage UsageOf(const DocumentReader& json) {
  return {.prompt_tokens = json.Integer<size_t>("prompt_tokens"),
          .cached_tokens = json.Integer<size_t>("cached_tokens"),
          .completion_tokens = json.Integer<size_t>("completion_tokens"),
          .reasoning_tokens = json.Integer<size_t>("reasoning_tokens")};
}

Json TurnDocument(const SessionTurn& turn) {
  Json json = {{"kind", TurnKindName(turn.kind)},
               {"version", turn.version},
               {"parent", turn.parent},
               {"created", turn.created},
               {"keep", turn.keep},
               {"given", turn.given},
               {"tokens", turn.tokens}};
  if (turn.kind == Kind::kCut) return json;
  if (turn.kind == Kind::kAnswer) {
    json["messages"] = *turn.messages;
    json["variables"] = *turn.variables;
    json["tools"] = turn.tools;
    json["in_thinking"] = turn.in_thinking;
  }
  json["said"] = turn.answer.said;
  json["message"] = *turn.answer.message;
  json["options"] = OptionsJson(turn.options);
  json["reason"] = std::string(StopReasonName(turn.reason));
  json["stop_text"] = turn.stop_text;
  json["usage"] = StoredUsage(turn.usage);
  json["fingerprint"] = turn.service_fingerprint;
  json["idempotency_key"] = turn.idempotency_key;
  json["request_hash"] = turn.request_hash;
  return json;
}

SessionTurn TurnOf(const DocumentReader& json) {
  SessionTurn turn;
  turn.kind = KindOfTurn(json);
  turn.version = json.Integer<uint64_t>("version");
  turn.parent = json.Integer<uint64_t>("parent");
  turn.created = json.Integer<int64_t>("created");
  turn.keep = json.Integer<size_t>("keep");
  turn.given = json.Integer<size_t>("given");
  turn.tokens = json.Integers<int32_t>("tokens");
  if (turn.kind == Kind::kCut) return turn;
  if (turn.kind == Kind::kAnswer) {
    turn.messages = MessagesOf(json);
    turn.variables = JsonDocument(json.Object("variables"));
    turn.tools = json.Bool("tools");
    turn.in_thinking = json.Bool("in_thinking");
  }
  turn.answer.said = json.Text("said");
  if (turn.kind == Kind::kRaw) {
    json.Any("message");  // null
  } else {
    turn.answer.message = JsonDocument(json.Object("message"));
    const DocumentReader message = json.Part("message");
    message.Text("role");
    message.Text("content");
  }
  turn.options = OptionsOf(json.Part("options"));
  turn.reason = StopReasonOf(json, "reason");
  turn.stop_text = json.Text("stop_text");
  turn.usage = UsageOf(json.Part("usage"));
  turn.service_fingerprint = json.Text("fingerprint");
  turn.idempotency_key = json.Text("idempotency_key");
  turn.request_hash = json.Integer<uint64_t>("request_hash");
  return turn;
}

Session SessionOf(const Json& document, absl::Status* error) {
  const DocumentReader json(document, "", error);
  Session session;
  session.name = json.Text("name");
  session.vocabulary = json.Text("vocabulary");
  session.created = json.Integer<int64_t>("created");
  session.updated = json.Integer<int64_t>("updated");
  session.version = json.Integer<uint64_t>("version");
  session.root = json.Text("root");
  session.messages = MessagesOf(json);
  if (!json.Any("tools").is_null()) session.tools = JsonDocument(json.List("tools"));
  session.variables = JsonDocument(json.Object("variables"));
  const size_t turns = json.List("turns").size();
  for (size_t i = 0; i < turns && error->ok(); ++i)
    session.turns.push_back(TurnOf(ElementOf(json, "turns", i)));
  return session;
}

// Whether a turn of this kind may follow the session so far.
bool MayFollow(const Session& session, size_t count, Kind kind) {
  if (count == 0) {
    const bool bare = session.messages->empty() && session.tools->is_null();
    return kind == Kind::kAnswer || kind == Kind::kCut || (kind == Kind::kRaw && bare);
  }
  const Kind before = session.turns[count - 1].kind;
  const bool answered = before == Kind::kAnswer || before == Kind::kContinuation;
  switch (kind) {
    case Kind::kAnswer:
    case Kind::kCut:
      return before != Kind::kRaw;
    case Kind::kContinuation:
      return answered;
    case Kind::kRaw:
      return !answered;
  }
  return false;
}

// What is wrong with turn `i`; "" for nothing.
std::string WrongWith(const Session& session, size_t i) {
  const SessionTurn& turn = session.turns[i];
  const uint64_t version_before = i == 0 ? 0 : session.turns[i - 1].version;
  const size_t length = i == 0 ? 0 : session.turns[i - 1].end();
  if (turn.version <= version_before || turn.version > session.version)
    return absl::StrCat("has the version ", turn.version, ", which is not between those beside it");
  if (turn.parent >= turn.version)
    return absl::StrCat("has the parent ", turn.parent, ", which is not before it");
  if (turn.keep > length) return absl::StrCat("keeps ", turn.keep, " tokens of ", length);
  const bool all_given = turn.kind == Kind::kCut;
  if (turn.given > turn.tokens.size() || (all_given && turn.given != turn.tokens.size()))
    return absl::StrCat("was given ", turn.given, " of ", turn.tokens.size(), " tokens");
  if (!MayFollow(session, i, turn.kind))
    return absl::StrCat("is of the kind ", TurnKindName(turn.kind), ", which cannot be there");
  // Its prompt goes on from all that there is: the answer that it continues is read from there.
  const bool keeps_all = turn.kind == Kind::kContinuation || turn.kind == Kind::kRaw;
  if (keeps_all && turn.keep != length)
    return absl::StrCat("keeps ", turn.keep, " of the ", length, " tokens that it continues");
  const auto negative =
      std::find_if(turn.tokens.begin(), turn.tokens.end(), [](int32_t token) { return token < 0; });
  if (negative != turn.tokens.end()) return absl::StrCat("has the token ", *negative);
  return "";
}

}  // namespace

std::string TurnKindName(SessionTurn::Kind kind) {
  const auto known = std::find_if(std::begin(kKinds), std::end(kKinds),
                                  [kind](const auto& k) { return k.first == kind; });
  return std::string(known->second);
}

Json SessionDocument(const Session& session) {
  Json turns = Json::array();
  for (const SessionTurn& turn : session.turns) turns.push_back(TurnDocument(turn));
  return {{"object", std::string(kObject)},
          {"format", kFormat},
          {"name", session.name},
          {"version", session.version},
          {"created", session.created},
          {"updated", session.updated},
          {"vocabulary", session.vocabulary},
          {"root", session.root},
          {"messages", *session.messages},
          {"tools", *session.tools},
          {"variables", *session.variables},
          {"turns", std::move(turns)}};
}

absl::StatusOr<Session> ParseSession(const Json& document) {
  return OrOutOfMemory("this session", [&]() -> absl::StatusOr<Session> {
    absl::Status error;
    const DocumentReader json(document, "", &error);
    if (json.Text("object") != kObject)
      return absl::InvalidArgumentError("the document is no saved session");
    if (const int format = json.Integer<int>("format"); error.ok() && format != kFormat) {
      return absl::InvalidArgumentError(
          absl::StrCat("the session is of the format ", format, "; this server reads ", kFormat));
    }
    Session session = SessionOf(document, &error);
    if (!error.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the document is no whole session: ", error.message()));
    }
    // A change counts one more.
    constexpr uint64_t kMostVersion = std::numeric_limits<int64_t>::max();
    if (session.version > kMostVersion) {
      return absl::InvalidArgumentError(
          absl::StrCat("the session's version ", session.version, " is more than ", kMostVersion));
    }
    INLAY_RETURN_IF_ERROR(CheckSessionName(session.name));
    if (!session.root.empty()) INLAY_RETURN_IF_ERROR(CheckSessionName(session.root));
    for (size_t i = 0; i < session.turns.size(); ++i) {
      if (const std::string wrong = WrongWith(session, i); !wrong.empty())
        return absl::InvalidArgumentError(absl::StrCat("the session's turn ", i, " ", wrong));
    }
    return session;
  });
}

}  // namespace inlay::serve
