#include "serve/scheduler/batcher.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "base/steady_time.h"
#include "base/token_ids.h"
#include "cache/cache_bytes.h"
#include "cache/cache_options.h"
#include "gemma_like/generation/generation.h"
#include "gemma_like/generation/model_drafter.h"
#include "gemma_like/generation/speculate.h"

namespace inlay::serve {
namespace {

// Drafted tokens pay where a step has to read all weights for few tokens.
constexpr size_t kMostDrafting = 4;
// Conversations of a draft model have this share of the memory.
constexpr size_t kDraftShare = 8;
// The prompt that waits longest gets at least a quarter of a step.
constexpr size_t kOldestShare = 4;

bool UsesDraftModel(const SchedulerOptions& options) {
  return options.draft_model != nullptr && options.draft > 0;
}

size_t DraftMemory(const SchedulerOptions& options) {
  return UsesDraftModel(options) ? options.memory / kDraftShare : 0;
}

// Whether `a` gets memory before `b`.
bool GoesBefore(const Answer* a, const Answer* b) {
  return std::pair(-a->ticket().request.priority, a->order()) <
         std::pair(-b->ticket().request.priority, b->order());
}

// The rows of logits of a step of an answer after its prompt, and that of its draft model.
size_t RowsWithDrafts(const SchedulerOptions& options) {
  return 1 + options.draft + (UsesDraftModel(options) ? 1 : 0);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Batcher>> Batcher::Create(Engine& engine, const Tokenizer& tokenizer,
                                                         const SchedulerOptions& options) {
  assert(options.draft <= DraftedTokens::kMost && options.most_running > 0);
  return OrOutOfMemory("the scheduler", [&]() -> absl::StatusOr<std::unique_ptr<Batcher>> {
    const size_t rows = RowsWithDrafts(options);
    const size_t bytes = options.memory - DraftMemory(options);
    const MemoryBudget memory(bytes, engine.PlanCache(options.kv_type),
                              engine.info().vocab_size * sizeof(float));
    const size_t context = memory.LongestAlone(options.context, rows);
    if (context < 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("one conversation needs at least ", memory.BytesFor(2, rows),
                       " bytes, more than the ", bytes, " bytes there are"));
    }
    const auto pool = std::make_shared<BlockPool>(BlockPool::Options{.limit_bytes = bytes});
    INLAY_ASSIGN_OR_RETURN(
        std::unique_ptr<KVCache> empty,
        engine.CreateCache({.max_length = context, .pool = pool}, options.kv_type));
    return std::unique_ptr<Batcher>(
        new Batcher(engine, tokenizer, options, pool, std::move(empty), memory, context));
  });
}

Batcher::Batcher(Engine& engine, const Tokenizer& tokenizer, const SchedulerOptions& options,
                 std::shared_ptr<BlockPool> pool, std::unique_ptr<KVCache> empty,
                 const MemoryBudget& memory, size_t context)
    : engine_(engine),
      tokenizer_(tokenizer),
      options_(options),
      context_(context),
      most_running_(options.most_running),
      pool_(std::move(pool)),
      draft_pool_(
          std::make_shared<BlockPool>(BlockPool::Options{.limit_bytes = DraftMemory(options)})),
      empty_(std::move(empty)),
      memory_(memory),
      prefixes_(options_, pool_, *empty_, memory_),
      // Where memory is short prompts are scored in shorter steps, so that each fits alone.
      scored_rows_(memory_.MostRowsAlone(context_, kMostScoredRows)),
      budget_(options.step, engine.info().max_batch) {
  running_.reserve(options_.most_running);
}

absl::Status Batcher::Check(const AnswerRequest& request) const {
  INLAY_RETURN_IF_ERROR(CheckSampling(request.options.sampling));
  if (request.prompt.empty()) return absl::InvalidArgumentError("the prompt is empty");
  const bool room = request.prompt.size() < context_ ||
                    (request.prompt.size() == context_ && request.options.max_tokens == 0);
  if (!room) {
    return absl::OutOfRangeError(absl::StrCat("the prompt has ", request.prompt.size(),
                                              " tokens, which leaves no room for an answer in the "
                                              "context of ",
                                              context_));
  }
  INLAY_RETURN_IF_ERROR(CheckScoring(request.options, request.prompt.size()));
  return CheckIds(request.prompt, engine_.info().vocab_size, " of the prompt");
}

void Batcher::Add(const std::shared_ptr<Ticket>& ticket) {
  stats_.requests += 1;
  stats_.prompt_tokens += ticket->request.prompt.size();
  // The others follow once the prompt is computed, which they then share.
  QueueNew(ticket, 0);
}

void Batcher::QueueNew(const std::shared_ptr<Ticket>& ticket, size_t choice) {
  AnswerPtr answer;
  const absl::Status made = OrOutOfMemory("this answer", [&] {
    answer = std::make_unique<Answer>(ticket, choice, next_order_++);
    return absl::OkStatus();
  });
  if (made.ok()) return Queue(std::move(answer));
  Answer ended(ticket, choice, 0);
  TellEnds(ended, made);
}

void Batcher::Queue(AnswerPtr answer) {
  const AnswerRequest& request = answer->ticket().request;
  const uint64_t order = answer->order();
  const absl::Status queued = OrOutOfMemory("this answer", [&] {
    waiting_.Push(request.priority, request.owner, order, std::move(answer));
    return absl::OkStatus();
  });
  if (!queued.ok()) TellEnds(*answer, queued);  // it was not moved
}

void Batcher::QueueOtherChoices(Answer& first) {
  for (size_t choice = 1; choice < first.ticket().request.choices; ++choice) {
    QueueNew(first.shared_ticket(), choice);
  }
}

void Batcher::TellEnd(Answer& answer, const absl::Status& error) {
  const absl::Status status = error.ok() || !options_.on_error ? error : options_.on_error(error);
  const AnswerUsage usage = answer.Usage();
  stats_.drafted_tokens += usage.drafted;
  stats_.accepted_tokens += usage.accepted;
  if (status.ok()) {
    ++stats_.answers;
    stats_.answer_seconds.Add(SteadyNow() - answer.ticket().arrived);
  } else {
    const bool late = absl::IsDeadlineExceeded(status);
    ++(absl::IsCancelled(status) ? stats_.cancelled : late ? stats_.timed_out : stats_.failed);
  }
  // Others hear of their ends, too. If this one is not told for lack of memory, ~Answer tells it.
  (void)OrOutOfMemory("the end of an answer", [&] {
    if (counted_) counted_();
    answer.TellEnd(status);
    return absl::OkStatus();
  });
}

void Batcher::TellEnds(Answer& answer, const absl::Status& status) {
  TellEnd(answer, status);
  if (answer.ticket().started || answer.choice() > 0) return;
  for (size_t choice = 1; choice < answer.ticket().request.choices; ++choice) {
    Answer other(answer.shared_ticket(), choice, 0);
    TellEnd(other, status);
  }
}

bool Batcher::Runs(const Answer* answer) const {
  return std::any_of(running_.begin(), running_.end(),
                     [&](const AnswerPtr& other) { return other.get() == answer; });
}

Batcher::AnswerPtr Batcher::Remove(Answer& answer) {
  const auto at = std::find_if(running_.begin(), running_.end(),
                               [&](const AnswerPtr& other) { return other.get() == &answer; });
  assert(at != running_.end());
  AnswerPtr removed = std::move(*at);
  running_.erase(at);
  memory_.Release(std::exchange(removed->reserved, 0));
  return removed;
}

void Batcher::End(Answer& answer, const absl::Status& status) {
  const AnswerPtr ended = Remove(answer);
  if (!absl::IsResourceExhausted(status))
    most_running_ = std::min(most_running_ + 1, options_.most_running);
  TellEnds(*ended, status);
  const bool is_whole = status.ok() && !ended->in_prompt();
  const std::unique_ptr<KVCache> conversation = ended->End();
  // The next turn of this chat begins with what was just said.
  if (!is_whole || conversation == nullptr) return;
  prefixes_.Keep(ended->ticket().request, *conversation);
}

void Batcher::EndCancelled() {
  const auto why = [](Answer& answer) {
    const Ticket& ticket = answer.ticket();
    return !ticket.ended() && answer.Stop() ? absl::OkStatus() : ticket.WhyEnded();
  };
  std::vector<Answer*> ended;
  for (const AnswerPtr& answer : running_) {
    if (answer->ticket().is_to_end()) ended.push_back(answer.get());
  }
  for (Answer* answer : ended) End(*answer, why(*answer));
  waiting_.RemoveIf([](const AnswerPtr& answer) { return answer->ticket().is_to_end(); },
                    [&](const AnswerPtr& answer) { TellEnds(*answer, why(*answer)); });
}

bool Batcher::IsBounded(const AnswerRequest& request) const {
  return request.options.max_tokens <= context_ - request.prompt.size();
}

size_t Batcher::RowsOf(const AnswerRequest& request) const {
  const size_t scored = request.options.score_from.has_value() ? scored_rows_ : 0;
  return std::max(RowsWithDrafts(options_), scored);
}

size_t Batcher::FirstBound(const Answer& answer) const {
  const AnswerRequest& request = answer.ticket().request;
  const size_t length = IsBounded(request)
                            ? request.prompt.size() + request.options.max_tokens + options_.draft
                            : answer.length() + options_.reserve;
  return std::min(length, context_);
}

void Batcher::Admit() {
  short_of_memory_ = false;
  while (!waiting_.empty() && running_.size() < most_running_) {
    const Answer& next = *waiting_.front();
    const size_t bound = FirstBound(next);
    const size_t bytes = memory_.BytesFor(bound, RowsOf(next.ticket().request));
    // Nothing overtakes an answer that waits for memory, or it might wait forever.
    short_of_memory_ = !memory_.Reserve(bytes);
    if (short_of_memory_) return;
    running_.push_back(waiting_.Pop());
    Answer& answer = *running_.back();
    answer.reserved = bytes;
    if (answer.bound == 0 && answer.choice() == 0)  // not after a pause, nor after the prompt
      stats_.queue_seconds.Add(SteadyNow() - answer.ticket().arrived);
    answer.bound = bound;
    // An answer that runs must have been started.
    const absl::Status status = OrOutOfMemory("this answer", [&] { return Start(answer); });
    if (!status.ok()) End(answer, status);
  }
}

absl::StatusOr<std::shared_ptr<Drafter>> Batcher::NewDrafter() const {
  if (!UsesDraftModel(options_)) return nullptr;
  Engine& drafts = *options_.draft_model;
  const std::optional<DraftCosts>& costs = options_.draft_costs;
  return ModelDrafter::Create(drafts, engine_.info().vocab_size,
                              costs ? *costs : CostsOfDrafts(engine_, drafts),
                              {.max_length = context_, .pool = draft_pool_}, options_.kv_type,
                              costs ? DraftCostsAre::kFixed : DraftCostsAre::kMeasured);
}

absl::Status Batcher::Start(Answer& answer) {
  prefixes_.TakeFetched(answer.ticket());
  if (answer.has_begun()) return answer.Resume(prefixes_.ReuseFor(answer));
  INLAY_ASSIGN_OR_RETURN(std::shared_ptr<Drafter> drafter, NewDrafter());
  return answer.Begin(*empty_, tokenizer_, prefixes_.ReuseFor(answer), options_.draft,
                      std::move(drafter), scored_rows_);
}

void Batcher::Pause(Answer& answer) {
  if (const absl::Status status = answer.Pause(*empty_); !status.ok()) return End(answer, status);
  ++stats_.pauses;
  Queue(Remove(answer));
}

Answer* Batcher::PauseLast() {
  Answer* last = nullptr;
  for (const AnswerPtr& answer : running_) {
    if (IsBounded(answer->ticket().request)) continue;
    if (last == nullptr || GoesBefore(last, answer.get())) last = answer.get();
  }
  if (last != nullptr) Pause(*last);
  return last;
}

size_t Batcher::Extend(Answer& answer, size_t tokens) {
  while (answer.length() + tokens > answer.bound) {
    const size_t bound =
        std::min(context_, std::max(answer.length() + tokens, answer.bound + options_.reserve));
    if (bound <= answer.bound) return std::min(tokens, context_ - answer.length());
    const size_t bytes = memory_.BytesFor(bound, RowsOf(answer.ticket().request));
    if (memory_.Reserve(bytes - answer.reserved)) {
      answer.reserved = bytes;
      answer.bound = bound;
    } else if (const Answer* paused = PauseLast(); paused == nullptr || paused == &answer) {
      return 0;
    }
  }
  return tokens;
}

size_t Batcher::DraftFor(const Answer& answer) const {
  // A draft model rests by itself where it does not pay.
  const bool pays = UsesDraftModel(options_) || answer.drafts_well();
  return running_.size() <= kMostDrafting && pays ? options_.draft : 0;
}

bool Batcher::AddShare(Answer& answer, size_t most, std::vector<Share>& shares) {
  const bool prompt = answer.in_prompt();
  const absl::StatusOr<Generation::Step> step = answer.Next(most);
  if (!step.ok()) {
    MakeRoom(answer, step.status());
    return false;
  }
  const size_t row = shares.empty() ? 0 : shares.back().row + shares.back().step.logit_rows;
  shares.push_back({.answer = &answer,
                    .step = *step,
                    .prompt = prompt,
                    .from = answer.cache().length(),
                    .row = row,
                    .outcome = {}});
  return true;
}

std::vector<Batcher::Share> Batcher::Compose() {
  std::vector<Answer*> decoding;
  for (const AnswerPtr& answer : running_) {
    if (!answer->in_prompt()) decoding.push_back(answer.get());
  }
  // In order of priority: an answer that lacks memory pauses itself or a later one, never one that
  // already has its share.
  std::sort(decoding.begin(), decoding.end(), GoesBefore);
  std::vector<Share> shares;
  size_t left = engine_.info().max_batch;
  for (Answer* answer : decoding) {
    if (!Runs(answer) || left == 0) continue;
    const size_t wanted = std::max(answer->certain(), 1 + DraftFor(*answer));
    const size_t most = Extend(*answer, wanted);
    if (most > 0 && AddShare(*answer, std::min(most, left), shares))
      left -= shares.back().step.tokens.size();
  }
  AddPrompts(shares.empty() ? left : std::min(left, budget_.tokens()), shares);
  return shares;
}

void Batcher::AddPrompts(size_t tokens, std::vector<Share>& shares) {
  std::vector<Answer*> prompts;
  for (const AnswerPtr& answer : running_) {
    if (answer->in_prompt()) prompts.push_back(answer.get());
  }
  if (prompts.empty() || tokens == 0) return;
  // The shortest first, for the mean time to the first token; but the oldest always goes on.
  const auto oldest =
      std::min_element(prompts.begin(), prompts.end(),
                       [](const Answer* a, const Answer* b) { return a->order() < b->order(); });
  std::iter_swap(prompts.begin(), oldest);
  std::stable_sort(prompts.begin() + 1, prompts.end(), [](const Answer* a, const Answer* b) {
    return std::pair(a->prompt_left(), a->order()) < std::pair(b->prompt_left(), b->order());
  });
  const size_t wanted = std::max<size_t>(1, tokens / kOldestShare);
  size_t rest = 0;  // what the others can use
  for (size_t i = 1; i < prompts.size(); ++i) rest += prompts[i]->prompt_left();
  for (Answer* answer : prompts) {
    if (tokens == 0) return;
    const bool first = answer == prompts.front();
    const size_t most = first ? std::max(wanted, tokens - std::min(tokens, rest)) : tokens;
    if (AddShare(*answer, most, shares)) tokens -= shares.back().step.tokens.size();
  }
}

void Batcher::EvictFor(const std::vector<Share>& shares) {
  size_t needed = 0;
  for (const Share& share : shares) needed += memory_.BytesToAppend(share.step.tokens.size());
  (void)prefixes_.MakeRoom(needed);
}

absl::Status Batcher::Compute(std::vector<Share>& shares) {
  const size_t vocab_size = engine_.info().vocab_size;
  const size_t rows = shares.back().row + shares.back().step.logit_rows;
  if (logits_.size() < rows * vocab_size) logits_.resize(rows * vocab_size);
  std::vector<SequenceStep> steps;
  for (const Share& share : shares) {
    const Ticket* ticket = &share.answer->ticket();
    steps.push_back({.cache = &share.answer->cache(),
                     .tokens = share.step.tokens,
                     .logit_rows = share.step.logit_rows,
                     .cancel = [ticket] { return ticket->cancelled.load(); }});
  }
  std::vector<absl::Status> outcomes(steps.size());
  INLAY_RETURN_IF_ERROR(engine_.Forward(steps, FloatRows(logits_.data(), rows, vocab_size), nullptr,
                                        absl::MakeSpan(outcomes)));
  for (size_t i = 0; i < shares.size(); ++i) shares[i].outcome = std::move(outcomes[i]);
  return absl::OkStatus();
}

void Batcher::MakeRoom(Answer& answer, const absl::Status& status) {
  if (!absl::IsResourceExhausted(status)) return End(answer, status);
  if (prefixes_.DropOldest()) return;  // the same step once more
  // By the promises this is the system's memory, not ours.
  if (running_.size() == 1) return End(answer, status);
  Pause(answer);
  // Admitted again at once it would only be paused again.
  most_running_ = running_.size();
}

void Batcher::Charge(Answer& answer, size_t from) {
  const size_t end = answer.in_prompt() ? answer.cache().length() : answer.length();
  const size_t begin = std::max(from, answer.charged);
  if (end <= begin) return;
  const AnswerRequest& request = answer.ticket().request;
  waiting_.Charge(request.priority, request.owner, end - begin);
  answer.charged = end;
}

void Batcher::Accept(const Share& share, absl::Time now) {
  Answer& answer = *share.answer;
  if (!share.outcome.ok()) {
    if (absl::IsCancelled(share.outcome)) return;  // the next step ends it
    return MakeRoom(answer, share.outcome);
  }
  const size_t vocab_size = engine_.info().vocab_size;
  const size_t before = answer.generated();
  const absl::Status status = answer.Accept(
      ConstFloatRows(logits_.data() + share.row * vocab_size, share.step.logit_rows, vocab_size));
  if (!status.ok()) return End(answer, status);
  if (share.prompt) stats_.computed_tokens += share.step.tokens.size();
  Charge(answer, share.from);
  if (answer.in_prompt()) return;
  stats_.generated_tokens += answer.generated() - before;
  if (answer.ticket().started) {
    if (before > 0) stats_.between_tokens.Add(now - answer.last_token);
    answer.Tell();
  } else {
    if (answer.generated() > 0) stats_.first_token.Add(now - answer.ticket().arrived);
    answer.Tell();
    stats_.cached_tokens += answer.cached();
    QueueOtherChoices(answer);
  }
  answer.last_token = now;
  if (answer.done()) End(answer, absl::OkStatus());
}

void Batcher::Step() {
  const absl::Status status = OrOutOfMemory("a step of all answers", [&] {
    ComputeStep();
    return absl::OkStatus();
  });
  // The same step would find no memory again.
  if (!status.ok() && !running_.empty()) MakeRoom(*running_.back(), status);
}

void Batcher::ComputeStep() {
  EndCancelled();
  Admit();
  std::vector<Share> shares = Compose();
  if (shares.empty()) return;
  size_t prompt_tokens = 0;
  stats_.batch_tokens = 0;
  for (const Share& share : shares) {
    stats_.batch_tokens += share.step.tokens.size();
    if (share.prompt) prompt_tokens += share.step.tokens.size();
  }
  EvictFor(shares);
  const absl::Time start = SteadyNow();
  const absl::Status status =
      OrOutOfMemory("a step of all answers", [&] { return Compute(shares); });
  const absl::Time now = SteadyNow();
  ++stats_.steps;
  stats_.step_seconds.Add(now - start);
  if (prompt_tokens < stats_.batch_tokens) budget_.Measured(prompt_tokens, now - start);
  // Without memory nothing was computed: one answer less may do.
  if (absl::IsResourceExhausted(status)) return MakeRoom(*shares.back().answer, status);
  for (Share& share : shares) {
    if (!status.ok()) share.outcome = status;
    // Each share that is in its conversation must be accepted, whatever finds no memory for
    // another one: its answer would append the same tokens again.
    const absl::Status accepted = OrOutOfMemory("this answer", [&] {
      Accept(share, now);
      return absl::OkStatus();
    });
    if (!accepted.ok() && Runs(share.answer)) End(*share.answer, accepted);
  }
}

SchedulerStats Batcher::stats() const {
  SchedulerStats stats = stats_;
  stats.waiting = waiting_.size();
  stats.running = running_.size();
  stats.free_places = short_of_memory_ ? 0 : most_running_ - running_.size();
  stats.reserved_bytes = memory_.reserved();
  stats.memory_bytes = pool_->limit_bytes() + draft_pool_->limit_bytes();
  stats.used_bytes = pool_->used_bytes() + draft_pool_->used_bytes();
  stats.snapshots = prefixes_.snapshots();
  stats.snapshot_bytes = prefixes_.bytes();
  stats.shared_hits = prefixes_.shared_hits();
  stats.shared_tokens = prefixes_.shared_tokens();
  return stats;
}

}  // namespace inlay::serve
