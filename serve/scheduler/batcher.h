// The scheduler without its thread: which answers run, and what each step computes.
#ifndef INLAY_SERVE_SCHEDULER_BATCHER_H_
#define INLAY_SERVE_SCHEDULER_BATCHER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cache/block_pool.h"
#include "cache/kv_cache.h"
#include "gemma_like/engine.h"
#include "io/tokenizer/tokenizer.h"
#include "serve/scheduler/answer.h"
#include "serve/scheduler/fair_queue.h"
#include "serve/scheduler/memory_budget.h"
#include "serve/scheduler/prompt_prefixes.h"
#include "serve/scheduler/scheduler_options.h"
#include "serve/scheduler/scheduler_stats.h"
#include "serve/scheduler/step_budget.h"

namespace inlay::serve {

// One thread uses it; only Check, Fetch and context may be called from others.
class Batcher {
 public:
  static absl::StatusOr<std::unique_ptr<Batcher>> Create(Engine& engine, const Tokenizer& tokenizer,
                                                         const SchedulerOptions& options);

  // Whether a request can be answered; the errors of Scheduler::Submit.
  absl::Status Check(const AnswerRequest& request) const;
  size_t context() const { return context_; }

  // See PromptPrefixes.
  bool Fetch(const Ticket& ticket, std::function<void(FetchedPrefix)> done) const {
    return prefixes_.Fetch(ticket, std::move(done));
  }

  // Queues the answers to a request that passed Check. Without memory for that they end with
  // ResourceExhausted.
  void Add(const std::shared_ptr<Ticket>& ticket);

  // Ends what was cancelled, stopped or is late, admits what waits, and computes one step. A step
  // that finds no memory gives up a snapshot, or pauses an answer, which is not admitted before
  // another one has ended, or ends the only one that runs.
  void Step();
  // The last thing before the end; see PromptPrefixes.
  void OfferAll(absl::Duration most) { prefixes_.OfferAll(most); }
  bool idle() const { return waiting_.empty() && running_.empty(); }

  SchedulerStats stats() const;
  // `counted` is called whenever an answer that ends is part of stats(), before its listener hears
  // of the end: whoever publishes them then has counted every answer that a client has.
  void OnCounted(std::function<void()> counted) { counted_ = std::move(counted); }

 private:
  using AnswerPtr = std::unique_ptr<Answer>;
  // An answer's share of a step.
  struct Share {
    Answer* answer;
    Generation::Step step;
    bool prompt;
    size_t from;  // the length of the conversation before
    size_t row;   // of its first logits
    absl::Status outcome;
  };

  Batcher(Engine& engine, const Tokenizer& tokenizer, const SchedulerOptions& options,
          std::shared_ptr<BlockPool> pool, std::unique_ptr<KVCache> empty,
          const MemoryBudget& memory, size_t context);

  // For one answer; null: it drafts from its text.
  absl::StatusOr<std::shared_ptr<Drafter>> NewDrafter() const;
  // Begins or resumes it.
  absl::Status Start(Answer& answer);

  void ComputeStep();
  void EndCancelled();
  void Admit();
  // Whether memory for the whole answer is promised when it is admitted.
  bool IsBounded(const AnswerRequest& request) const;
  // The rows of logits that each step of the answer needs at most.
  size_t RowsOf(const AnswerRequest& request) const;
  // The length that memory is promised for then.
  size_t FirstBound(const Answer& answer) const;
  // Promises memory for a step of at most `tokens` tokens, and returns how many there is memory
  // for: 0 where the answer itself was paused.
  size_t Extend(Answer& answer, size_t tokens);
  // Pauses the running answer whose length is not bounded that has the lowest priority, of several
  // the youngest; null where there is none.
  Answer* PauseLast();
  void Pause(Answer& answer);

  std::vector<Share> Compose();
  size_t DraftFor(const Answer& answer) const;
  void AddPrompts(size_t tokens, std::vector<Share>& shares);
  bool AddShare(Answer& answer, size_t most, std::vector<Share>& shares);
  // Evicts snapshots until the step's appends fit.
  void EvictFor(const std::vector<Share>& shares);
  absl::Status Compute(std::vector<Share>& shares);
  // Charges the answer's owner with what was computed from this position on, unless that was
  // charged before the answer was paused.
  void Charge(Answer& answer, size_t from);
  void Accept(const Share& share, absl::Time now);
  // Frees memory for a step that found too little; ends the answer where that cannot help.
  void MakeRoom(Answer& answer, const absl::Status& status);
  void QueueOtherChoices(Answer& first);
  // Makes an answer to the request, and queues it. An answer for which there is no memory here or
  // in Queue ends; neither throws.
  void QueueNew(const std::shared_ptr<Ticket>& ticket, size_t choice);
  void Queue(AnswerPtr answer);
  bool Runs(const Answer* answer) const;
  // Tells the end and removes the answer from those that run.
  void End(Answer& answer, const absl::Status& status);
  AnswerPtr Remove(Answer& answer);
  // Tells the end, also of the choices that wait for this one's prompt.
  void TellEnds(Answer& answer, const absl::Status& status);
  void TellEnd(Answer& answer, const absl::Status& error);

  Engine& engine_;
  const Tokenizer& tokenizer_;
  const SchedulerOptions options_;
  const size_t context_;
  size_t most_running_;  // fewer than in the options while the system has memory for fewer
  const std::shared_ptr<BlockPool> pool_;
  const std::shared_ptr<BlockPool> draft_pool_;  // of the draft model's conversations
  const std::unique_ptr<KVCache> empty_;
  MemoryBudget memory_;
  PromptPrefixes prefixes_;
  bool short_of_memory_ = false;  // the answer whose turn it is waits for memory
  const size_t scored_rows_;      // in a step of a prompt whose tokens are scored
  StepBudget budget_;
  uint64_t next_order_ = 0;
  FairQueue<AnswerPtr> waiting_;
  std::vector<AnswerPtr> running_;  // by order of admission; with room for all that may be there
  std::vector<float> logits_;
  SchedulerStats stats_;
  std::function<void()> counted_;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SCHEDULER_BATCHER_H_
