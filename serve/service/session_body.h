// Reads what clients send to /v1/sessions.
#ifndef INLAY_SERVE_SERVICE_SESSION_BODY_H_
#define INLAY_SERVE_SERVICE_SESSION_BODY_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/json/parse_json.h"
#include "serve/api/call.h"
#include "serve/api/parse_options.h"
#include "serve/sessions/session.h"

namespace inlay::serve {

// A new session, as far as the request says, else with the template's variables of `defaults`; its
// name may be empty.
absl::StatusOr<Session> ParseNewSession(absl::string_view body, const CallDefaults& defaults);

// A request for a turn.
struct TurnBody {
  uint64_t parent = 0;
  std::string idempotency_key;  // "": none
  uint64_t hash = 0;            // of what the request asks for
  bool raw = false;             // text or tokens instead of messages
  bool background = false;      // goes on when its client goes away
  JsonDocument rest;            // the fields of a chat completion, or of a completion
};
absl::StatusOr<TurnBody> ParseTurn(absl::string_view body);

// The call that a turn stands for: one of chat/completions with the session's tools, or one of
// completions with one prompt. What the turn leaves out is that of `defaults`, except the
// template's variables, which the session has.
absl::StatusOr<Call> CallOf(const TurnBody& turn, const Session& session,
                            const CallDefaults& defaults);

// A place in a session: a version or a position in tokens.
struct SessionPlace {
  std::optional<uint64_t> version;
  std::optional<size_t> position;
};

// Fork: the new session's name, and the place up to which it is copied (neither: all of it).
struct ForkBody {
  std::string name;
  SessionPlace place;
};
absl::StatusOr<ForkBody> ParseFork(absl::string_view body);

// Rewind: exactly one place, and the version that the session must have, if any.
struct RewindBody {
  std::optional<uint64_t> parent;
  SessionPlace place;
};
absl::StatusOr<RewindBody> ParseRewind(absl::string_view body);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_SESSION_BODY_H_
