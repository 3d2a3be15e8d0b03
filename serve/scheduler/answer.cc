#include "serve/scheduler/answer.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "absl/types/span.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "gemma_like/generation/speculate.h"

namespace inlay::serve {
namespace {

// After kTried drafted tokens, drafting goes on only if kLeastRight of them were accepted.
constexpr size_t kTried = 32;
constexpr double kLeastRight = 0.3;

}  // namespace

absl::Status Ticket::WhyEnded() const {
  if (cancelled && drained) return absl::UnavailableError("the server is shutting down");
  if (cancelled || stopped) return absl::CancelledError("the request was cancelled");
  return absl::DeadlineExceededError("the request's deadline has passed");
}

Answer::~Answer() {
  if (ended_) return;
  (void)OrOutOfMemory("the end of an answer", [&] {
    TellEnd(OutOfMemoryError("this answer"));
    return absl::OkStatus();
  });
}

size_t Answer::length() const {
  if (!tokens_.empty()) return tokens_.size();
  if (generation_ == nullptr || generation_->in_prompt()) return ticket_->request.prompt.size();
  return generation_->conversation().size();
}

absl::Status Answer::Begin(const KVCache& empty, const Tokenizer& tokenizer, PromptReuse reuse,
                           size_t draft, std::shared_ptr<Drafter> drafter, size_t scored_rows) {
  assert(!has_begun());
  return OrOutOfMemory("this answer", [&]() -> absl::Status {
    GenerateOptions options = ticket_->request.options;
    options.sampling.choice += static_cast<uint32_t>(choice_);
    options.draft = draft;
    options.drafter = drafter;
    options.scored_rows = scored_rows;
    if (choice_ > 0) options.score_from = std::nullopt;  // the first one has done it
    INLAY_ASSIGN_OR_RETURN(cache_, empty.Fork());
    INLAY_ASSIGN_OR_RETURN(generation_,
                           Generation::Begin(tokenizer, *cache_, ticket_->request.prompt,
                                             std::move(options), std::move(reuse)));
    drafter_ = std::move(drafter);
    return absl::OkStatus();
  });
}

absl::Status Answer::Pause(const KVCache& empty) {
  return OrOutOfMemory("this answer", [&]() -> absl::Status {
    INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<KVCache> emptied, empty.Fork());
    if (generation_->in_prompt()) {
      generation_ = nullptr;  // nothing was chosen yet: it begins anew
      drafter_ = nullptr;
    } else if (refill_ == nullptr) {
      const absl::Span<const int32_t> tokens = generation_->conversation();
      tokens_.assign(tokens.begin(), tokens.end());
    }
    refill_ = nullptr;
    if (drafter_ != nullptr) drafter_->Pause();
    return cache_->Restore(std::move(*emptied));
  });
}

absl::Status Answer::Resume(PromptReuse reuse) {
  assert(has_begun() && refill_ == nullptr);
  return OrOutOfMemory("this answer", [&] {
    refill_ = std::make_unique<PromptSteps>(*cache_, tokens_, std::move(reuse));
    return absl::OkStatus();
  });
}

bool Answer::Stop() {
  if (told_tokens_ == 0) return false;
  is_enough_ = true;
  if (!generation_->done()) generation_->Cancel();
  return true;
}

std::unique_ptr<KVCache> Answer::End() {
  refill_ = nullptr;
  generation_ = nullptr;
  drafter_ = nullptr;
  tokens_.clear();
  return std::move(cache_);
}

size_t Answer::prompt_left() const {
  const size_t size = refill_ != nullptr ? tokens_.size() : ticket_->request.prompt.size();
  return size - std::max(cache_->length(), std::min(reusable, size));
}

size_t Answer::certain() const { return std::max<size_t>(1, generation_->pending()); }

bool Answer::drafts_well() const {
  const size_t drafted = generation_->drafted();
  return drafted < kTried ||
         static_cast<double>(generation_->accepted()) >= kLeastRight * static_cast<double>(drafted);
}

absl::StatusOr<Generation::Step> Answer::Next(size_t most) {
  if (refill_ == nullptr) return generation_->Next(most);
  INLAY_ASSIGN_OR_RETURN(const absl::Span<const int32_t> tokens, refill_->Next(most));
  return Generation::Step{.tokens = tokens, .logit_rows = 0};
}

absl::Status Answer::Accept(ConstFloatRows logits) {
  if (refill_ == nullptr) return generation_->Accept(logits);
  refill_->Accept();
  if (refill_->done()) {
    refill_ = nullptr;
    tokens_.clear();
  }
  return absl::OkStatus();
}

AnswerUsage Answer::Usage() const {
  AnswerUsage usage{.prompt_tokens = ticket_->request.prompt.size()};
  if (generation_ == nullptr) return usage;
  usage.cached_tokens = generation_->reused();
  usage.completion_tokens = is_enough_ ? told_tokens_ : generation_->tokens().size();
  usage.drafted = generation_->drafted();
  usage.accepted = generation_->accepted();
  return usage;
}

void Answer::Tell() {
  if (in_prompt() || is_enough_) return;
  absl::Span<const ChosenToken> chosen =
      absl::MakeConstSpan(generation_->chosen()).subspan(told_chosen_);
  std::vector<ChosenToken> all;
  const AnswerRequest& request = ticket_->request;
  size_t scored = 0;
  if (!told_prompt_ && request.options.score_from.has_value()) {
    scored = request.prompt.size() - *request.options.score_from;
    // The first answer scores the prompt for all of them.
    if (choice_ > 0) {
      all = ticket_->scored;
      all.insert(all.end(), chosen.begin(), chosen.end());
      chosen = all;
    } else if (request.choices > 1) {
      ticket_->scored.assign(chosen.begin(), chosen.begin() + static_cast<ptrdiff_t>(scored));
    }
  }
  if (!ticket_->started) ticket_->listener->OnStart(Usage());
  told_prompt_ = true;
  told_chosen_ = generation_->chosen().size();
  TellTokens(chosen, scored);
  if (is_enough_ && !generation_->done()) generation_->Cancel();
  // Last: until then the choices that wait for the prompt end with this answer if it fails.
  ticket_->started = true;
}

void Answer::TellTokens(absl::Span<const ChosenToken> chosen, size_t scored) {
  // One by one, whatever the number of tokens in a step: that depends on drafts, but where the
  // listener ends the answer, and what it counts, must not.
  const absl::string_view text = generation_->text();
  const size_t tokens = generation_->tokens().size();
  do {
    const bool last = told_tokens_ + 1 >= tokens;
    const size_t text_end = last ? text.size() : generation_->text_end(told_tokens_);
    const size_t count = last ? chosen.size() : std::min(chosen.size(), scored + 1);
    told_tokens_ = last ? tokens : told_tokens_ + 1;
    const AnswerUpdate update = {.choice = choice_,
                                 .text = text.substr(told_text_, text_end - told_text_),
                                 .chosen = chosen.first(count),
                                 .generated = told_tokens_};
    told_text_ = text_end;
    chosen.remove_prefix(count);
    scored = 0;
    if (!update.text.empty() || !update.chosen.empty())
      is_enough_ = !ticket_->listener->OnUpdate(update);
  } while (!is_enough_ && told_tokens_ < tokens);
}

void Answer::TellEnd(const absl::Status& status) {
  AnswerEnd end{
      .choice = choice_, .status = status, .stop_text = "", .tokens = {}, .usage = Usage()};
  if (generation_ != nullptr) {
    end.reason = generation_->stop_reason();
    end.stop_text = generation_->stop_text();
    end.tokens = generation_->tokens();
    // The step in which the listener had enough may have gone on, even to the answer's own end.
    if (is_enough_) {
      end.reason = StopReason::kCancelled;
      end.stop_text.clear();
      end.tokens.resize(told_tokens_);
    }
  }
  ended_ = true;
  ticket_->listener->OnEnd(end);
}

}  // namespace inlay::serve
