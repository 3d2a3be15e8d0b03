// A conversation that the server keeps: its tokens, and the turns that they came from.
#ifndef INLAY_SERVE_SESSIONS_SESSION_H_
#define INLAY_SERVE_SESSIONS_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gemma_like/generation/generation.h"
#include "io/json/parse_json.h"
#include "serve/api/reply.h"

namespace inlay::serve {

// An answer as text and as a message.
struct SessionAnswer {
  std::string said;  // as the model wrote it, markers included
  // {"role", "content", "reasoning_content", "tool_calls"}; null for a raw turn.
  JsonDocument message;
};

// One step of a session: it keeps tokens of the session before it, and adds its own.
struct SessionTurn {
  enum class Kind {
    kAnswer,        // messages, and the model's answer to them
    kContinuation,  // goes on with the answer before it: raw text, and what the model adds
    kRaw,           // raw text without messages, and what the model adds
    kCut,           // the beginning of a turn's prompt, which a rewind has left
  };
  Kind kind = Kind::kAnswer;
  uint64_t version = 0;         // of the session with it. What a version names never changes.
  uint64_t parent = 0;          // of the session before
  size_t keep = 0;              // how many tokens of the session before it keeps
  std::vector<int32_t> tokens;  // that follow these
  size_t given = 0;             // how many of them were not generated

  JsonDocument messages{Json::array()};    // kAnswer: those that were answered
  JsonDocument variables{Json::object()};  // kAnswer: of the template
  bool tools = false;                      // kAnswer: the template was given the session's tools
  bool in_thinking = false;                // kAnswer: the prompt had opened the thoughts
  SessionAnswer answer;

  GenerateOptions options;  // with the seed
  StopReason reason = StopReason::kEndOfGeneration;
  std::string stop_text;
  ReplyUsage usage;
  std::string service_fingerprint;  // of the server that computed it; "fingerprint" in JSON
  int64_t created = 0;              // seconds since 1970
  // Of the request; "" when it had none, or when the turn is no longer what was replied.
  std::string idempotency_key;
  uint64_t request_hash = 0;

  size_t answer_begin() const { return keep + given; }
  size_t end() const { return keep + tokens.size(); }
};

struct Session {
  std::string name;
  std::string vocabulary;  // identifies the model's vocabulary
  int64_t created = 0;     // seconds since 1970; what templates are told
  int64_t updated = 0;
  uint64_t version = 0;                  // grows with every change
  std::string root = {};                 // the session that its forks go back to; "": it is no fork
  JsonDocument messages{Json::array()};  // before the first turn
  JsonDocument tools;                    // as in Call
  JsonDocument variables{Json::object()};  // of the template, unless a turn has others
  std::vector<SessionTurn> turns;

  static constexpr size_t kAll = std::numeric_limits<size_t>::max();

  // The number of tokens.
  size_t length() const { return turns.empty() ? 0 : turns.back().end(); }
  // The tokens of the session after its first `count` turns.
  std::vector<int32_t> Tokens(size_t count = kAll) const;

  // The messages of the first `count` turns, with those before them, answers included.
  JsonDocument Messages(size_t count = kAll) const;

  // Whether the tokens end with an answer to messages.
  bool ends_with_answer() const;
  // Whether the next turn may be one of messages. A session that begins with raw text has none.
  bool is_chat() const;
  // Whether it has messages or tools that no turn was computed with yet.
  bool waits_for_messages() const;

  // The turn (kAnswer) in which the answer begins that turn `turn` (kAnswer or kContinuation) ends
  // with.
  size_t AnswerTurn(size_t turn) const;

  // What it begins with, to be found by: the first words of its first user, or else its first text.
  // A line of at most kMostTitle bytes; "" when there is no text.
  static constexpr size_t kMostTitle = 80;
  std::string Title() const;

  // The turn that this request made, or null.
  const SessionTurn* FindKey(absl::string_view idempotency_key) const;
};

// Whether `name` may be one: 1 to 64 of the characters A-Z, a-z, 0-9, _ and -.
absl::Status CheckSessionName(absl::string_view name);

// Reads the answer of the session's turn `turn`, of which only `tokens` are left.
using ReadSessionAnswer = std::function<SessionAnswer(const Session& session, size_t turn,
                                                      absl::Span<const int32_t> tokens)>;

// The session as it was with this version: the session's own, 0 for no turn, or that of one of its
// turns. Otherwise NotFound. Unless nothing changes, the session has a new version.
absl::Status RewindToVersion(Session& session, uint64_t version);

// The session with its first `position` tokens. A turn of which a part of the answer is left keeps
// that part. OutOfRange beyond the session's length. Unless nothing changes, the session has a new
// version, and so has a turn that was cut.
absl::Status RewindToPosition(Session& session, size_t position, const ReadSessionAnswer& read);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SESSIONS_SESSION_H_
