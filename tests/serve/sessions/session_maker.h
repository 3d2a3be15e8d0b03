// Sessions for tests, with turns of any kind.
#ifndef INLAY_TESTS_SERVE_SESSIONS_SESSION_MAKER_H_
#define INLAY_TESTS_SERVE_SESSIONS_SESSION_MAKER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "serve/sessions/session.h"

namespace inlay::serve {

inline Session MakeSession(const std::string& name) {
  Session session;
  session.name = name;
  session.vocabulary = "v";
  session.created = 100;
  session.updated = 200;
  return session;
}

// Appends a turn that keeps `keep` tokens, is given `given` and generates `generated`.
inline SessionTurn& AddTurn(Session& session, SessionTurn::Kind kind, size_t keep,
                            std::vector<int32_t> given, std::vector<int32_t> generated) {
  SessionTurn turn;
  turn.kind = kind;
  turn.parent = session.version;
  turn.version = ++session.version;
  turn.keep = keep;
  turn.given = given.size();
  turn.tokens = std::move(given);
  turn.tokens.insert(turn.tokens.end(), generated.begin(), generated.end());
  turn.answer.said = "said " + std::to_string(turn.version);
  if (kind == SessionTurn::Kind::kAnswer)
    *turn.messages = Json::array({{{"role", "user"}, {"content", "question"}}});
  if (kind == SessionTurn::Kind::kAnswer || kind == SessionTurn::Kind::kContinuation)
    *turn.answer.message = {{"role", "assistant"}, {"content", turn.answer.said}};
  turn.options.sampling.seed = ~uint64_t{0} - session.version;
  turn.options.stop_texts = {"stop"};
  turn.usage.completion_tokens = generated.size();
  turn.service_fingerprint = "f";
  turn.idempotency_key = "key " + std::to_string(turn.version);
  turn.request_hash = 1000 + turn.version;
  session.turns.push_back(std::move(turn));
  return session.turns.back();
}

// What the answer to be read again is: its tokens as text.
inline SessionAnswer ReadAsText(const Session&, size_t, absl::Span<const int32_t> tokens) {
  SessionAnswer answer;
  for (const int32_t token : tokens) answer.said += std::to_string(token) + " ";
  *answer.message = {{"role", "assistant"}, {"content", answer.said}};
  return answer;
}

}  // namespace inlay::serve

#endif  // INLAY_TESTS_SERVE_SESSIONS_SESSION_MAKER_H_
