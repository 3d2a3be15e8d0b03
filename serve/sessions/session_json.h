// Sessions as JSON documents: what stores keep, and what clients save and load.
#ifndef INLAY_SERVE_SESSIONS_SESSION_JSON_H_
#define INLAY_SERVE_SESSIONS_SESSION_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/json/parse_json.h"
#include "serve/sessions/session.h"

namespace inlay::serve {

// "answer", "continuation", "raw" or "cut".
std::string TurnKindName(SessionTurn::Kind kind);

// All of a session. {"object": "inlay.session", "format": 1, ...}
Json SessionDocument(const Session& session);

// The session that a document holds. A stranger may have written it: InvalidArgument, naming the
// part, for what is no session, whatever is wrong; tokens are 0 or more, their upper bound is the
// model's.
absl::StatusOr<Session> ParseSession(const Json& document);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SESSIONS_SESSION_JSON_H_
