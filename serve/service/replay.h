// POST /v1/replay: computes a logged answer again.
#ifndef INLAY_SERVE_SERVICE_REPLAY_H_
#define INLAY_SERVE_SERVICE_REPLAY_H_

#include <string>

#include "gemma_like/grammar/answer_grammars.h"
#include "serve/scheduler/scheduler.h"
#include "serve/service/visit.h"

namespace inlay::serve {

// Replies whether the answer of the record in the request's body is the same now, and where not, at
// which token it differs. `engine_fingerprint`: this server's (see Fingerprints).
void ReplayAnswer(Scheduler& scheduler, AnswerGrammars& grammars,
                  const std::string& engine_fingerprint, const Visit& visit);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_REPLAY_H_
