// What /v1/sessions replies.
#ifndef INLAY_SERVE_SERVICE_SESSION_REPLY_H_
#define INLAY_SERVE_SERVICE_SESSION_REPLY_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "gemma_like/chat/answer_event.h"
#include "io/json/parse_json.h"
#include "io/tokenizer/tokenizer.h"
#include "serve/sessions/session.h"
#include "serve/sessions/session_store.h"

namespace inlay::serve {

// {"name", "title", "root", "version", "length", "created", "updated", "bytes"}, and "unreadable",
// a sentence, for one that cannot be read.
Json SummaryJson(const SessionSummary& summary);

// A session with its turns.
Json SessionJson(const Session& session);

// Adds the session's tokens to its JSON, and the text of each with its size in bytes (of a part of
// a character the text is U+FFFD). Without `tokenizer`, which knows no token of another vocabulary,
// each text is U+FFFD and has the size 0.
void AddTokens(const Session& session, const Tokenizer* tokenizer, Json* json);

// The turn as its reply: {"object": "session.turn", "session", "version", "parent", "kind",
// "begin", "answer", "end", "message" or "text", "finish_reason", "usage", "seed",
// "system_fingerprint"...}
Json TurnJson(const Session& session, const SessionTurn& turn);

// The first event of a stream that follows a running turn.
Json RunningJson(const Session& session, const SessionTurn& turn);

// What a stream says of an event: {"type": "text" or "reasoning", "delta"}; {"type": "call",
// "call", "name"}, then {"type": "call", "call", "delta"}; {"type": "call_end", "call"}.
Json EventJson(const AnswerEvent& event);

// The events of an answer that is known in whole, without those of `before`, the part of it that
// was there already.
std::vector<AnswerEvent> EventsOf(const SessionAnswer& answer, const SessionAnswer& before = {});

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_SESSION_REPLY_H_
