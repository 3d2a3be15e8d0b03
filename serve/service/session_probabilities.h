// POST /v1/sessions/NAME/probabilities: how likely the model finds the tokens of a session.
#ifndef INLAY_SERVE_SERVICE_SESSION_PROBABILITIES_H_
#define INLAY_SERVE_SERVICE_SESSION_PROBABILITIES_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/tokenizer/tokenizer.h"
#include "serve/scheduler/answer_request.h"
#include "serve/scheduler/scheduler.h"
#include "serve/service/visit.h"
#include "serve/service/workers.h"
#include "serve/sessions/session.h"

namespace inlay::serve {

// The most tokens of one request.
inline constexpr size_t kMostProbabilities = 4096;

// Which tokens of a session are asked for: those at the positions from `begin` >= 1, as the first
// one follows nothing, to before `end`; each with the `top` most likely tokens at its position.
struct ProbabilitiesBody {
  size_t begin = 1, end = 1;
  size_t top = 0;
};
// InvalidArgument that names the field.
absl::StatusOr<ProbabilitiesBody> ParseProbabilities(absl::string_view body);

// What a reply needs. The tokenizer, the scheduler and the workers must outlive it.
struct ProbabilitiesHost {
  const Tokenizer& tokenizer;
  Scheduler& scheduler;
  Workers& writers;  // on whose threads replies are written
};

// Has the tokens computed again and sends the reply once they are: {"object":
// "session.probabilities", "session", "version", "begin", "end", "tokens": [{"id", "text",
// "logprob", "top": [{"id", "text", "logprob"}, ...]}, ...]}, or an error. Ends when the client
// goes away. `request` says whose request it is; its prompt and options are set here. An error that
// is returned was not sent: OutOfRange for tokens that the session does not have, InvalidArgument
// for a body that is wrong, and the errors of Scheduler::Submit.
absl::Status ReplyProbabilities(const ProbabilitiesHost& host, const Session& session,
                                AnswerRequest request, const Visit& visit);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_SESSION_PROBABILITIES_H_
