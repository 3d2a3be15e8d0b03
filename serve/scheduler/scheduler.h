// Shares one engine among requests: continuous batching with prompts in slices, memory promised in
// advance, prefixes reused.
#ifndef INLAY_SERVE_SCHEDULER_SCHEDULER_H_
#define INLAY_SERVE_SCHEDULER_SCHEDULER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gemma_like/engine.h"
#include "io/tokenizer/tokenizer.h"
#include "serve/scheduler/answer_request.h"
#include "serve/scheduler/scheduler_options.h"
#include "serve/scheduler/scheduler_stats.h"

namespace inlay::serve {

// An answer depends on its request alone: its bytes are the same whatever else runs, however it is
// paused, and whatever is reused. One thread owns the engine.
class Scheduler {
 public:
  // The engine and the tokenizer must outlive the scheduler. InvalidArgument when not even one
  // token fits into the memory; ResourceExhausted without memory or threads.
  static absl::StatusOr<std::unique_ptr<Scheduler>> Create(Engine& engine,
                                                           const Tokenizer& tokenizer,
                                                           const SchedulerOptions& options);
  // Ends all answers with Cancelled.
  virtual ~Scheduler() = default;

  // Queues a request and returns its number. InvalidArgument for options out of range or a token
  // outside of the vocabulary, OutOfRange for a prompt that leaves no room in the context,
  // ResourceExhausted when too many requests wait, Unavailable once it drains. The listener is told
  // of nothing then.
  virtual absl::StatusOr<uint64_t> Submit(AnswerRequest request,
                                          std::shared_ptr<AnswerListener> listener) = 0;

  // Ends the answers to a request with Cancelled, at the latest after the current layer. Does
  // nothing if they have ended.
  virtual void Cancel(uint64_t id) = 0;
  // Ends the answers to a request where they are after the current step, with
  // StopReason::kCancelled and no error; those of which nothing was told yet as Cancel does.
  virtual void Stop(uint64_t id) = 0;

  // Accepts no more requests, and returns once all answers have ended: those that have not after
  // `most` with Unavailable: another server may be asked for them. Where their ends take longer
  // than SchedulerOptions::time_to_cancel, it does not wait for them.
  virtual void Drain(absl::Duration most) = 0;

  // As of the end of the last step or answer: an answer is counted before its end is told.
  virtual SchedulerStats stats() const = 0;

  // The longest conversation, which is less than the context asked for where memory is short.
  virtual size_t context() const = 0;

 protected:
  Scheduler() = default;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SCHEDULER_SCHEDULER_H_
