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

// The following functions throw nlohmann's exceptions for what is not what it should be.

Kind KindOfTurn(const Json& name) {
  const std::string text = name.get<std::string>();
  const auto known = std::find_if(std::begin(kKinds), std::end(kKinds),
                                  [&](const auto& k) { return k.second == text; });
  if (known == std::end(kKinds)) name.get<bool>();  // throws
  return known->first;
}

std::vector<int32_t> TokensOf(const Json& list) {
  std::vector<int32_t> tokens;
  tokens.reserve(list.size());
  for (const Json& token : list) tokens.push_back(IntegerOf<int32_t>(token));
  return tokens;
}

Json MessagesOf(const Json& list) {
  list.get_ref<const Json::array_t&>();
  for (const Json& message : list) message.at("role").get<std::string>();
  return list;
}

Json ObjectOf(const Json& json) {
  json.get_ref<const Json::object_t&>();
  return json;
}

Json StoredUsage(const ReplyUsage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"cached_tokens", usage.cached_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"reasoning_tokens", usage.reasoning_tokens}};
}

ReplyUsage UsageOf(const Json& json) {
  return {.prompt_tokens = IntegerOf<size_t>(json.at("prompt_tokens")),
          .cached_tokens = IntegerOf<size_t>(json.at("cached_tokens")),
          .completion_tokens = IntegerOf<size_t>(json.at("completion_tokens")),
          .reasoning_tokens = IntegerOf<size_t>(json.at("reasoning_tokens"))};
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
    json["messages"] = turn.messages;
    json["variables"] = turn.variables;
    json["tools"] = turn.tools;
    json["in_thinking"] = turn.in_thinking;
  }
  json["said"] = turn.answer.said;
  json["message"] = turn.answer.message;
  json["options"] = OptionsJson(turn.options);
  json["reason"] = std::string(StopReasonName(turn.reason));
  json["stop_text"] = turn.stop_text;
  json["usage"] = StoredUsage(turn.usage);
  json["fingerprint"] = turn.fingerprint;
  json["idempotency_key"] = turn.idempotency_key;
  json["request_hash"] = turn.request_hash;
  return json;
}

SessionTurn TurnOf(const Json& json) {
  SessionTurn turn;
  turn.kind = KindOfTurn(json.at("kind"));
  turn.version = IntegerOf<uint64_t>(json.at("version"));
  turn.parent = IntegerOf<uint64_t>(json.at("parent"));
  turn.created = IntegerOf<int64_t>(json.at("created"));
  turn.keep = IntegerOf<size_t>(json.at("keep"));
  turn.given = IntegerOf<size_t>(json.at("given"));
  turn.tokens = TokensOf(json.at("tokens"));
  if (turn.kind == Kind::kCut) return turn;
  if (turn.kind == Kind::kAnswer) {
    turn.messages = MessagesOf(json.at("messages"));
    turn.variables = ObjectOf(json.at("variables"));
    turn.tools = json.at("tools").get<bool>();
    turn.in_thinking = json.at("in_thinking").get<bool>();
  }
  turn.answer.said = json.at("said").get<std::string>();
  turn.answer.message = json.at("message");
  if (turn.kind == Kind::kRaw) {
    turn.answer.message = nullptr;
  } else {
    turn.answer.message.at("role").get<std::string>();
    turn.answer.message.at("content").get<std::string>();
  }
  turn.options = OptionsOf(json.at("options"));
  turn.reason = StopReasonOf(json.at("reason"));
  turn.stop_text = json.at("stop_text").get<std::string>();
  turn.usage = UsageOf(json.at("usage"));
  turn.fingerprint = json.at("fingerprint").get<std::string>();
  turn.idempotency_key = json.at("idempotency_key").get<std::string>();
  turn.request_hash = IntegerOf<uint64_t>(json.at("request_hash"));
  return turn;
}

Session SessionOf(const Json& json) {
  Session session;
  session.name = json.at("name").get<std::string>();
  session.vocabulary = json.at("vocabulary").get<std::string>();
  session.created = IntegerOf<int64_t>(json.at("created"));
  session.updated = IntegerOf<int64_t>(json.at("updated"));
  session.version = IntegerOf<uint64_t>(json.at("version"));
  session.root = json.at("root").get<std::string>();
  session.messages = MessagesOf(json.at("messages"));
  if (const Json& tools = json.at("tools"); !tools.is_null())
    session.tools = tools.get_ref<const Json::array_t&>();
  session.variables = ObjectOf(json.at("variables"));
  for (const Json& turn : json.at("turns").get_ref<const Json::array_t&>())
    session.turns.push_back(TurnOf(turn));
  return session;
}

// Whether a turn of this kind may follow the session so far.
bool MayFollow(const Session& session, size_t count, Kind kind) {
  if (count == 0) {
    const bool bare = session.messages.empty() && session.tools.is_null();
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
          {"messages", session.messages},
          {"tools", session.tools},
          {"variables", session.variables},
          {"turns", std::move(turns)}};
}

absl::StatusOr<Session> ParseSession(const Json& document) {
  return OrOutOfMemory("this session", [&]() -> absl::StatusOr<Session> {
    Session session;
    try {
      if (!document.is_object() || document.value("object", "") != kObject)
        return absl::InvalidArgumentError("the document is no saved session");
      if (document.at("format") != kFormat) {
        return absl::InvalidArgumentError(absl::StrCat("the session is of the format ",
                                                       document.at("format").dump(),
                                                       "; this server reads ", kFormat));
      }
      session = SessionOf(document);
    } catch (const nlohmann::json::exception& error) {
      return absl::InvalidArgumentError(
          absl::StrCat("the document is no whole session: ", error.what()));
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
