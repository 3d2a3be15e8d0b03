// What the scheduler is asked for, and what it tells of the answer.
#ifndef INLAY_SERVE_SCHEDULER_ANSWER_REQUEST_H_
#define INLAY_SERVE_SCHEDULER_ANSWER_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "gemma_like/generation/generation.h"
#include "gemma_like/generation/sampler.h"

namespace inlay::serve {

struct AnswerRequest {
  std::vector<int32_t> prompt;
  // Of every answer. The n-th answer is drawn as the sampling's choice + n. Drafting and the rows
  // that are scored in a step are the scheduler's decision: they change no answer.
  GenerateOptions options;
  size_t choices = 1;  // how many answers
  // Positions in the prompt at which other prompts are likely to part from this one, ascending: a
  // snapshot is kept there.
  std::vector<size_t> marks = {};
  int32_t owner = 0;  // whose request it is, 0 or more: owners take turns
  // Prefixes are shared among the requests with the same of these, 0 or more.
  int32_t prefix_owner = 0;
  // What all servers call that one: prefixes are shared with their requests of the same one.
  // None: with no other server's.
  std::optional<std::string> shared_owner = std::nullopt;
  int priority = 0;                              // a larger one goes first
  absl::Time deadline = absl::InfiniteFuture();  // see SteadyNow()
};

struct AnswerUsage {
  size_t prompt_tokens = 0;
  size_t cached_tokens = 0;  // of the prompt, reused instead of computed
  size_t completion_tokens = 0;
  size_t drafted = 0;
  size_t accepted = 0;  // of the drafted tokens
};

// What became known of one answer since the last update: its next token, or a few where the text of
// the first ones was not final. That does not depend on drafts.
struct AnswerUpdate {
  size_t choice = 0;
  absl::string_view text;  // that is final
  // If GenerateOptions::top_chances asks for them. All that are scored of the prompt come first, in
  // the first update of each answer.
  absl::Span<const ChosenToken> chosen;
  size_t generated = 0;  // tokens so far
};

// The end of one answer. With an error there is no reason; what was told before stays true.
struct AnswerEnd {
  size_t choice = 0;
  absl::Status status;
  StopReason reason = StopReason::kEndOfGeneration;
  std::string stop_text;  // for kStopText
  std::vector<int32_t> tokens;
  AnswerUsage usage;
};

// Told about the answers to one request, on the scheduler's thread: it must not wait. It may submit
// and cancel.
class AnswerListener {
 public:
  virtual ~AnswerListener() = default;
  // Once, before the first update: the prompt is computed.
  virtual void OnStart(const AnswerUsage& usage) = 0;
  // Whether this answer goes on; otherwise it ends here, with StopReason::kCancelled and no error.
  // What the update refers to is valid during the call.
  virtual bool OnUpdate(const AnswerUpdate& update) = 0;
  // Once for each choice. Nothing follows the last one.
  virtual void OnEnd(const AnswerEnd& end) = 0;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SCHEDULER_ANSWER_REQUEST_H_
