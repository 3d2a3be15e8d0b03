#include "serve/service/session_reply.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "serve/api/reply_parts.h"
#include "serve/sessions/session_json.h"

namespace inlay::serve {
namespace {

using Kind = SessionTurn::Kind;

std::string FinishReason(const SessionTurn& turn) {
  if (turn.reason == StopReason::kCancelled) return "cancelled";
  if (IsCut(turn.reason)) return "length";
  const Json& message = *turn.answer.message;
  return message.is_object() && message.contains("tool_calls") ? "tool_calls" : "stop";
}

// What a turn is, wherever it is told of.
void AddTurn(const SessionTurn& turn, Json* json) {
  Json& out = *json;
  out["version"] = turn.version;
  out["parent"] = turn.parent;
  out["kind"] = TurnKindName(turn.kind);
  out["created"] = turn.created;
  out["begin"] = turn.keep;
  out["answer"] = turn.answer_begin();
  out["end"] = turn.end();
  if (turn.kind == Kind::kCut) return;
  if (turn.kind == Kind::kRaw) {
    out["text"] = turn.answer.said;
  } else {
    out["message"] = *turn.answer.message;
  }
  out["finish_reason"] = FinishReason(turn);
  if (!turn.stop_text.empty()) out["stop"] = turn.stop_text;
  out["usage"] = UsageJson(turn.usage);
  out["seed"] = turn.options.sampling.seed;
  out["system_fingerprint"] = turn.service_fingerprint;
  if (!turn.idempotency_key.empty()) out["idempotency_key"] = turn.idempotency_key;
}

}  // namespace

Json SummaryJson(const SessionSummary& summary) {
  Json json = {{"name", summary.name},       {"title", summary.title},
               {"root", summary.root},       {"version", summary.version},
               {"length", summary.length},   {"created", summary.created},
               {"updated", summary.updated}, {"bytes", summary.bytes}};
  if (!summary.unreadable.empty()) json["unreadable"] = summary.unreadable;
  return json;
}

Json SessionJson(const Session& session) {
  Json turns = Json::array();
  for (const SessionTurn& turn : session.turns) {
    Json json = Json::object();
    AddTurn(turn, &json);
    if (turn.kind == Kind::kAnswer) json["messages"] = *turn.messages;
    turns.push_back(std::move(json));
  }
  // Positions in a turn are those of its version: a later turn may have written them anew.
  size_t intact = std::numeric_limits<size_t>::max();
  for (size_t i = turns.size(); i > 0; --i) {
    turns[i - 1]["intact"] = session.turns[i - 1].end() <= intact;
    intact = std::min(intact, session.turns[i - 1].keep);
  }
  Json json = {
      {"object", "session"},        {"name", session.name},       {"title", session.Title()},
      {"root", session.root},       {"version", session.version}, {"length", session.length()},
      {"created", session.created}, {"updated", session.updated}, {"messages", *session.messages}};
  if (!session.tools->is_null()) json["tools"] = *session.tools;
  json["turns"] = std::move(turns);
  return json;
}

void AddTokens(const Session& session, const Tokenizer* tokenizer, Json* json) {
  const std::vector<int32_t> tokens = session.Tokens();
  Json& texts = (*json)["texts"] = Json::array();
  Json& sizes = (*json)["sizes"] = Json::array();
  for (const int32_t token : tokens) {
    const absl::string_view bytes = tokenizer == nullptr ? "" : tokenizer->TokenBytes(token);
    texts.push_back(tokenizer == nullptr ? "\xEF\xBF\xBD" : std::string(bytes));
    sizes.push_back(bytes.size());
  }
  (*json)["tokens"] = tokens;
}

Json TurnJson(const Session& session, const SessionTurn& turn) {
  Json json = {{"object", "session.turn"}, {"session", session.name}};
  AddTurn(turn, &json);
  return json;
}

Json RunningJson(const Session& session, const SessionTurn& turn) {
  return {
      {"type", "running"},       {"object", "session.turn"},      {"session", session.name},
      {"version", turn.version}, {"parent", turn.parent},         {"kind", TurnKindName(turn.kind)},
      {"begin", turn.keep},      {"answer", turn.answer_begin()}, {"messages", *turn.messages}};
}

Json EventJson(const AnswerEvent& event) {
  switch (event.kind) {
    case AnswerEvent::Kind::kText:
      return {{"type", "text"}, {"delta", event.text}};
    case AnswerEvent::Kind::kReasoning:
      return {{"type", "reasoning"}, {"delta", event.text}};
    case AnswerEvent::Kind::kCallBegin:
      return {{"type", "call"}, {"call", event.call}, {"name", event.text}};
    case AnswerEvent::Kind::kCallArguments:
      return {{"type", "call"}, {"call", event.call}, {"delta", event.text}};
    case AnswerEvent::Kind::kCallEnd:
      return {{"type", "call_end"}, {"call", event.call}};
  }
  return nullptr;
}

std::vector<AnswerEvent> EventsOf(const SessionAnswer& answer, const SessionAnswer& before) {
  using EventKind = AnswerEvent::Kind;
  std::vector<AnswerEvent> events;
  const auto add = [&](EventKind kind, std::string text, size_t call = 0) {
    if (text.empty() && (kind == EventKind::kText || kind == EventKind::kReasoning)) return;
    events.push_back({.kind = kind, .text = std::move(text), .call = call});
  };
  // What of `text` is not in the part before.
  const auto rest = [](std::string text, const std::string& before) {
    return absl::StartsWith(text, before) ? text.substr(before.size()) : text;
  };
  const Json& message = *answer.message;
  if (!message.is_object()) {
    add(EventKind::kText, rest(answer.said, before.said));
    return events;
  }
  const auto text_of = [](const Json& json, const char* key) {
    return JsonString(JsonMember(json, key));
  };
  for (const auto& [kind, key] : {std::pair(EventKind::kReasoning, "reasoning_content"),
                                  std::pair(EventKind::kText, "content")}) {
    add(kind, rest(text_of(message, key), text_of(*before.message, key)));
  }
  const auto calls = message.find("tool_calls");
  if (calls == message.end() || !calls->is_array()) return events;
  const auto calls_before = before.message->find("tool_calls");
  for (size_t i = calls_before == before.message->end() ? 0 : calls_before->size();
       i < calls->size(); ++i) {
    if (!(*calls)[i].is_object() || !(*calls)[i].contains("function")) continue;
    const Json& function = (*calls)[i]["function"];
    add(EventKind::kCallBegin, text_of(function, "name"), i);
    add(EventKind::kCallArguments, text_of(function, "arguments"), i);
    add(EventKind::kCallEnd, "", i);
  }
  return events;
}

}  // namespace inlay::serve
