// Makes the prompts of sessions' turns.
#ifndef INLAY_SERVE_SERVICE_SESSION_PROMPT_H_
#define INLAY_SERVE_SERVICE_SESSION_PROMPT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gemma_like/chat/chat_renderer.h"
#include "io/json/parse_json.h"
#include "io/template/text.h"
#include "io/tokenizer/tokenizer.h"
#include "serve/api/call.h"
#include "serve/scheduler/answer_request.h"
#include "serve/service/session_answer.h"
#include "serve/sessions/session.h"

namespace inlay::serve {

class SessionPrompts {
 public:
  // `markers`: control tokens that show in answers without and with tools. All must outlive the
  // object.
  SessionPrompts(const Tokenizer& tokenizer, const ChatRenderer& renderer,
                 const std::array<std::vector<int32_t>, 2>& markers)
      : tokenizer_(tokenizer), renderer_(renderer), markers_(markers) {}

  // What the call adds to the session: sets the turn's kind, tokens and messages, and the request's
  // prompt. The turn has its version. Returns the reader of the answer, which has read what the
  // answer goes on with. FailedPrecondition where the session cannot go on so; errors of the
  // template.
  absl::StatusOr<SessionAnswerReader> PrepareMessages(const Session& session, const Call& call,
                                                      SessionTurn* turn,
                                                      AnswerRequest* request) const;
  // The same for text or tokens without a template.
  absl::StatusOr<SessionAnswerReader> PrepareRaw(const Session& session, const Call& call,
                                                 SessionTurn* turn, AnswerRequest* request) const;

  // Reads the answer that turn `turn` ends with, of which these tokens are left.
  absl::StatusOr<SessionAnswer> ReadAgain(const Session& session, size_t turn,
                                          absl::Span<const int32_t> tokens) const;

  // What the stream of a turn, one of the session's, told. A continuation's tells only what comes
  // behind the answer that it continues and the text that it was given.
  absl::StatusOr<std::vector<AnswerEvent>> EventsOfTurn(const Session& session,
                                                        const SessionTurn& turn) const;

 private:
  absl::StatusOr<ChatInput> InputOf(const Session& session, const Json& messages, bool tools,
                                    const Json& variables) const;
  absl::StatusOr<jinja::Text> RenderAnswered(const Session& session) const;
  // Calls of tools have ids that depend on the session's name and `version`. `one_call`: see
  // SessionAnswerReader.
  absl::StatusOr<SessionAnswerReader> ReaderOf(const Session& session, const SessionTurn& turn,
                                               uint64_t version, bool one_call = false) const;

  const Tokenizer& tokenizer_;
  const ChatRenderer& renderer_;
  const std::array<std::vector<int32_t>, 2>& markers_;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_SESSION_PROMPT_H_
