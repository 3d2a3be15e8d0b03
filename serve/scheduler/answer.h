// One answer on its way: its conversation, from its admission to its end, with pauses.
#ifndef INLAY_SERVE_SCHEDULER_ANSWER_H_
#define INLAY_SERVE_SCHEDULER_ANSWER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
#include "cache/kv_cache.h"
#include "gemma_like/generation/generation.h"
#include "gemma_like/generation/prompt_reuse.h"
#include "gemma_like/generation/prompt_steps.h"
#include "io/tokenizer/tokenizer.h"
#include "ops/views.h"
#include "serve/prefixes/shared_prefixes.h"
#include "serve/scheduler/answer_request.h"

namespace inlay::serve {

// What the answers to one request have in common.
struct Ticket {
  uint64_t id = 0;
  AnswerRequest request;
  std::shared_ptr<AnswerListener> listener;
  absl::Time arrived;  // see SteadyNow()
  std::atomic<bool> cancelled = false;
  std::atomic<bool> drained = false;  // set before `cancelled`: not by its client
  std::atomic<bool> stopped = false;  // its answers end where they are
  bool started = false;               // its listener knows, and all choices are queued
  FetchedPrefix fetched;              // of the prompt, from another server
  // The prompt's tokens that are scored, once it is computed.
  std::vector<ChosenToken> scored;

  // Whether it has been cancelled or is late.
  bool ended() const { return cancelled || SteadyNow() > request.deadline; }
  bool is_to_end() const { return ended() || stopped; }
  // What its client is told of an answer that this, or a stop, ends before it has anything.
  absl::Status WhyEnded() const;
};

// Not safe to use from several threads. An answer begins, may be paused and resumed several times,
// and ends; its listener hears of no pause.
class Answer {
 public:
  Answer(std::shared_ptr<Ticket> ticket, size_t choice, uint64_t order)
      : ticket_(std::move(ticket)), choice_(choice), order_(order) {}
  // Tells an end, if none was told: memory was short where the answer should have been kept.
  ~Answer();
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  Ticket& ticket() const { return *ticket_; }
  const std::shared_ptr<Ticket>& shared_ticket() const { return ticket_; }
  size_t choice() const { return choice_; }
  // Smaller ones were there first.
  uint64_t order() const { return order_; }

  // Tokens that it has before its next step: of the prompt, and after a pause of the answer so far.
  size_t length() const;

  // Begins with the prompt, in a copy of the conversation `empty`. `draft`, `drafter` and
  // `scored_rows`: see GenerateOptions.
  absl::Status Begin(const KVCache& empty, const Tokenizer& tokenizer, PromptReuse reuse,
                     size_t draft, std::shared_ptr<Drafter> drafter, size_t scored_rows);
  // Gives the memory of the conversation up, and that of its drafter, between steps. An answer that
  // was within its prompt has not begun then.
  absl::Status Pause(const KVCache& empty);
  // Whether it is to be resumed after a pause, instead of begun.
  bool has_begun() const { return generation_ != nullptr; }
  // Computes again what it had before the pause.
  absl::Status Resume(PromptReuse reuse);
  // Ends it where it is, between steps, as its listener does that has enough. False when nothing of
  // it was told yet.
  bool Stop();
  // Ends the generation. Returns the conversation, to be kept as a snapshot; null if there is none.
  std::unique_ptr<KVCache> End();

  // Whether tokens are to be computed before the next one can be chosen.
  bool in_prompt() const { return refill_ != nullptr || generation_->in_prompt(); }
  size_t prompt_left() const;
  bool done() const { return refill_ == nullptr && generation_->done(); }
  // Whether tokens drafted from the text were right often enough to go on with it.
  bool drafts_well() const;
  // Tokens that the next step after the prompt appends in any case, at least one.
  size_t certain() const;

  // The next step, of at most `most` tokens, and what came of it; see Generation.
  absl::StatusOr<Generation::Step> Next(size_t most);
  absl::Status Accept(ConstFloatRows logits);
  KVCache& cache() const { return *cache_; }

  // Tells the listener what is new, and ends the generation if it wants no more.
  void Tell();
  // Tells it the end, with an error or as the generation ended; once, last.
  void TellEnd(const absl::Status& status);

  size_t generated() const { return generation_->tokens().size(); }
  size_t cached() const { return generation_->reused(); }  // tokens of the prompt

  AnswerUsage Usage() const;

  absl::Time last_token;  // when it was chosen
  size_t reserved = 0;    // bytes promised to it
  size_t bound = 0;       // the length, in tokens, that they are enough for
  size_t charged = 0;     // tokens of the conversation that its owner was charged with or reused
  size_t reusable = 0;    // tokens of the prompt that a snapshot has, which is not restored yet

 private:
  // Tells the listener what is new; `chosen` begins with `scored` tokens of the prompt.
  void TellTokens(absl::Span<const ChosenToken> chosen, size_t scored);

  const std::shared_ptr<Ticket> ticket_;
  const size_t choice_;
  const uint64_t order_;
  // Destroyed after what refers to it.
  std::unique_ptr<KVCache> cache_;
  std::vector<int32_t> tokens_;          // of the conversation, while it is paused or refilled
  std::unique_ptr<PromptSteps> refill_;  // appends these again
  std::shared_ptr<Drafter> drafter_;     // of the generation; null: it drafts from its text
  std::unique_ptr<Generation> generation_;
  // What the listener was told.
  size_t told_tokens_ = 0;
  size_t told_text_ = 0;      // bytes
  size_t told_chosen_ = 0;    // of Generation::chosen()
  bool told_prompt_ = false;  // its tokens that are scored
  bool is_enough_ = false;    // it wants no more
  bool ended_ = false;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SCHEDULER_ANSWER_H_
