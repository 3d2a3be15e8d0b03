#include "gemma_like/generation/generation.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "base/utf8_stream.h"
#include "gemma_like/generation/prompt_steps.h"
#include "gemma_like/generation/speculate.h"
#include "gemma_like/generation/stop_matcher.h"
#include "gemma_like/grammar/answer_grammars.h"
#include "gemma_like/grammar/grammar_guide.h"
#include "ops/row_kernels.h"

namespace inlay {

absl::string_view StopReasonName(StopReason reason) {
  switch (reason) {
    case StopReason::kMaxTokens:
      return "length";
    case StopReason::kEndOfGeneration:
      return "end";
    case StopReason::kStopText:
      return "stop";
    case StopReason::kContextFull:
      return "context";
    case StopReason::kCancelled:
      return "cancelled";
  }
  return "";
}

absl::Status CheckScoring(const GenerateOptions& options, size_t prompt_tokens) {
  if (!options.score_from.has_value()) return absl::OkStatus();
  if (!options.top_chances.has_value())
    return absl::InvalidArgumentError("tokens of the prompt are scored only with top_chances");
  if (*options.score_from < 1 || *options.score_from > prompt_tokens) {
    return absl::InvalidArgumentError(absl::StrCat("score_from is ", *options.score_from,
                                                   ", not between 1 and the ", prompt_tokens,
                                                   " tokens of the prompt"));
  }
  if (options.scored_rows >= 1 && options.scored_rows <= kMostScoredRows) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("scored_rows is ", options.scored_rows,
                                                 ", not between 1 and ", kMostScoredRows));
}

SamplingOptions WithoutSuppressed(SamplingOptions options, const Tokenizer& tokenizer) {
  // Far below every other logit, and finite, so that one of these is left where a grammar permits
  // nothing else.
  constexpr float kSuppressed = -1e30f;
  for (const int32_t token : tokenizer.suppressed())
    options.logit_bias.emplace_back(token, kSuppressed);
  return options;
}

absl::Span<const float> TokenLogits(const Tokenizer& tokenizer, absl::Span<const float> row) {
  return tokenizer.size() == 0 ? row : row.first(std::min(tokenizer.size(), row.size()));
}

namespace {

// The token at position p is scored by the row after the one before it.
PromptRows RowsToScore(const GenerateOptions& options) {
  if (!options.score_from.has_value()) return {};
  return {.from = *options.score_from - 1, .most = options.scored_rows};
}

GenerateOptions Suppressing(GenerateOptions options, const Tokenizer& tokenizer) {
  options.sampling = WithoutSuppressed(std::move(options.sampling), tokenizer);
  return options;
}

class GenerationSteps final : public Generation {
 public:
  GenerationSteps(const Tokenizer& tokenizer, KVCache& cache, absl::Span<const int32_t> prompt,
                  GenerateOptions options, PromptReuse reuse);

  bool done() const override { return done_; }
  bool in_prompt() const override { return !prompt_steps_.done(); }
  bool MakeRoom() override { return in_prompt() && prompt_steps_.MakeRoom(); }
  size_t reused() const override { return prompt_steps_.reused(); }
  size_t most_logit_rows() const override {
    return std::max(1 + options_.draft,
                    options_.score_from.has_value() ? options_.scored_rows : size_t{1});
  }
  absl::StatusOr<Step> Next(size_t most) override;
  absl::Status Accept(ConstFloatRows logits) override;
  void Cancel() override;
  absl::string_view TakeText() override;
  const std::string& text() const override { return text_; }
  const std::vector<int32_t>& tokens() const override { return tokens_; }
  size_t text_end(size_t i) const override { return text_ends_[i]; }
  const std::vector<ChosenToken>& chosen() const override { return chosen_; }
  StopReason stop_reason() const override { return stop_reason_; }
  const std::string& stop_text() const override { return stop_.found(); }
  absl::Span<const int32_t> conversation() const override {
    return in_prompt() ? cache_.tokens() : drafted_tokens_.tokens();
  }
  size_t drafted() const override { return drafted_tokens_.drafted(); }
  size_t accepted() const override { return drafted_tokens_.accepted(); }
  size_t forced() const override { return forced_count_; }
  size_t pending() const override { return pending_.size(); }

 private:
  absl::StatusOr<Step> NextStep(size_t most);
  absl::Status AcceptStep(ConstFloatRows logits);
  // Of a step of the prompt.
  absl::Status AcceptPrompt(ConstFloatRows logits);
  // Chooses tokens as long as their logits have been computed.
  absl::Status Choose(ConstFloatRows logits);
  // The next token, from the grammar or from the logits after the last one.
  absl::StatusOr<int32_t> NextToken(absl::Span<const float> logits);
  absl::StatusOr<int32_t> Sample(absl::Span<const float> logits);
  // Looks for tokens that must come; whether there are any.
  absl::StatusOr<bool> FindForced();
  absl::StatusOr<int32_t> TakeForced();
  void Add(int32_t token);
  void Finish(StopReason reason);
  // What ends the answer once all chosen tokens are in the conversation, if anything does.
  std::optional<StopReason> EndReason() const;
  bool Ends() const { return EndReason().has_value(); }

  const Tokenizer& tokenizer_;
  KVCache& cache_;
  const GenerateOptions options_;
  const std::vector<int32_t> prompt_;
  Sampler sampler_;
  PromptLookup lookup_;
  DraftedTokens drafted_tokens_;
  // Declared after drafted_tokens_, so that it is destroyed, and restores the conversation, before
  // them.
  PromptSteps prompt_steps_;
  Utf8Stream characters_;
  StopMatcher stop_;
  std::optional<GrammarGuide> guide_;
  std::vector<int32_t> forced_;  // tokens that must come next, the last first
  size_t forced_count_ = 0;
  std::vector<int32_t> pending_;
  bool complete_ = false;  // the grammar has nothing more
  std::string text_;
  size_t returned_ = 0;  // bytes of text_ that TakeText() has returned
  std::vector<int32_t> tokens_;
  std::vector<size_t> text_ends_;  // of each
  std::vector<ChosenToken> chosen_;
  bool cancelled_ = false;
  bool done_ = false;
  StopReason stop_reason_ = StopReason::kMaxTokens;
};

GenerationSteps::GenerationSteps(const Tokenizer& tokenizer, KVCache& cache,
                                 absl::Span<const int32_t> prompt, GenerateOptions options,
                                 PromptReuse reuse)
    : tokenizer_(tokenizer),
      cache_(cache),
      options_(Suppressing(std::move(options), tokenizer)),
      prompt_(prompt.begin(), prompt.end()),
      sampler_(options_.sampling),
      drafted_tokens_(cache, options_.drafter == nullptr ? &lookup_ : options_.drafter.get(),
                      options_.draft),
      prompt_steps_(cache, prompt_, std::move(reuse), RowsToScore(options_)),
      stop_(options_.stop_texts) {
  if (options_.grammar != nullptr) guide_.emplace(tokenizer_, options_.grammar);
  text_ = characters_.Push(options_.begun);
}

absl::StatusOr<Generation::Step> GenerationSteps::Next(size_t most) {
  assert(!done_ && most > 0);
  return OrOutOfMemory("this answer", [&] { return NextStep(most); });
}

absl::StatusOr<Generation::Step> GenerationSteps::NextStep(size_t most) {
  if (in_prompt()) {
    INLAY_ASSIGN_OR_RETURN(const absl::Span<const int32_t> tokens, prompt_steps_.Next(most));
    const bool wanted = prompt_steps_.last() && options_.max_tokens > 0;
    return Step{.tokens = tokens,
                .logit_rows = std::max(prompt_steps_.rows(), wanted ? size_t{1} : size_t{0})};
  }
  if (Ends() || pending_.size() > 1) {
    INLAY_ASSIGN_OR_RETURN(const absl::Span<const int32_t> tokens,
                           drafted_tokens_.PlanCertain(pending_, most));
    const bool wanted = !Ends() && tokens.size() == pending_.size();
    return Step{.tokens = tokens, .logit_rows = wanted ? size_t{1} : size_t{0}};
  }
  INLAY_ASSIGN_OR_RETURN(const absl::Span<const int32_t> tokens,
                         drafted_tokens_.Plan(pending_.front(), most));
  return Step{.tokens = tokens, .logit_rows = tokens.size()};
}

std::optional<StopReason> GenerationSteps::EndReason() const {
  if (stop_.stopped()) return StopReason::kStopText;
  if (complete_) return StopReason::kEndOfGeneration;
  if (tokens_.size() >= options_.max_tokens) return StopReason::kMaxTokens;
  if (drafted_tokens_.tokens().size() + pending_.size() >= cache_.max_length())
    return StopReason::kContextFull;
  if (cancelled_) return StopReason::kCancelled;
  return std::nullopt;
}

absl::Status GenerationSteps::Accept(ConstFloatRows logits) {
  const absl::Status status = OrOutOfMemory("this answer", [&] { return AcceptStep(logits); });
  if (!status.ok()) done_ = true;
  return status;
}

absl::Status GenerationSteps::AcceptStep(ConstFloatRows logits) {
  if (in_prompt()) return AcceptPrompt(logits);
  const size_t before = drafted_tokens_.tokens().size();
  drafted_tokens_.Appended();
  const size_t appended = drafted_tokens_.tokens().size() - before;
  pending_.erase(pending_.begin(), pending_.begin() + static_cast<ptrdiff_t>(appended));
  if (!pending_.empty()) return absl::OkStatus();
  return Choose(logits);
}

absl::Status GenerationSteps::AcceptPrompt(ConstFloatRows logits) {
  const size_t end = prompt_steps_.end(), rows = prompt_steps_.rows();
  prompt_steps_.Accept();
  for (size_t row = 0; row < rows; ++row) {
    const size_t scored = end - rows + row + 1;
    if (scored == prompt_.size()) break;
    const absl::Span<const float> values = TokenLogits(tokenizer_, {logits.Row(row), logits.cols});
    if (!AllFinite(values.data(), values.size())) {
      const size_t before = cache_.length() - end;  // of the conversation before the prompt
      return NotFinite(before + scored - 1);
    }
    chosen_.push_back(ChanceOf(values, prompt_[scored], *options_.top_chances));
  }
  if (in_prompt()) return absl::OkStatus();
  drafted_tokens_.Synchronize();
  if (options_.drafter != nullptr)
    options_.drafter->StartAnswer(options_.sampling, cache_.length());
  // The last row is that of the next token.
  const size_t others = logits.rows - std::min<size_t>(logits.rows, 1);
  return Choose(logits.Slice(others, logits.rows - others));
}

absl::Status GenerationSteps::Choose(ConstFloatRows logits) {
  do {
    if (const std::optional<StopReason> reason = EndReason()) {
      Finish(*reason);
      return absl::OkStatus();
    }
    const absl::Span<const float> row =
        TokenLogits(tokenizer_, {logits.Row(drafted_tokens_.row()), logits.cols});
    INLAY_ASSIGN_OR_RETURN(const int32_t token, NextToken(row));
    // A token that a grammar forces is chosen without a look at the logits.
    if (options_.top_chances.has_value() && !AllFinite(row.data(), row.size()))
      return NotFinite(drafted_tokens_.tokens().size() - 1);
    const bool ends = guide_.has_value() || !options_.ignore_eos;
    if (ends && tokenizer_.IsEndOfGeneration(token)) {
      if (options_.top_chances.has_value() && options_.end_chance)
        chosen_.push_back(ChanceOf(row, token, *options_.top_chances));
      Finish(StopReason::kEndOfGeneration);
      return absl::OkStatus();
    }
    Add(token);
    if (options_.top_chances.has_value())
      chosen_.push_back(ChanceOf(row, token, *options_.top_chances));
  } while (drafted_tokens_.Follow(tokens_.back()));
  pending_ = {tokens_.back()};
  // Probabilities need the logits before each token, so those come one by one.
  while (guide_.has_value() && !options_.top_chances.has_value() && !Ends()) {
    INLAY_ASSIGN_OR_RETURN(const bool forced, FindForced());
    if (!forced) break;
    INLAY_ASSIGN_OR_RETURN(const int32_t token, TakeForced());
    pending_.push_back(token);
    Add(token);
  }
  return absl::OkStatus();
}

absl::StatusOr<int32_t> GenerationSteps::NextToken(absl::Span<const float> logits) {
  if (!guide_.has_value()) return sampler_.Sample(logits, drafted_tokens_.tokens(), tokens_.size());
  INLAY_ASSIGN_OR_RETURN(const bool forced, FindForced());
  return forced ? TakeForced() : Sample(logits);
}

absl::StatusOr<int32_t> GenerationSteps::Sample(absl::Span<const float> logits) {
  while (true) {
    INLAY_ASSIGN_OR_RETURN(const absl::Span<const uint64_t> allowed, guide_->Allowed());
    INLAY_ASSIGN_OR_RETURN(const int32_t token, sampler_.Sample(logits, drafted_tokens_.tokens(),
                                                                tokens_.size(), allowed));
    INLAY_ASSIGN_OR_RETURN(const bool accepted, guide_->Accept(token));
    if (!accepted) continue;
    INLAY_ASSIGN_OR_RETURN(complete_, guide_->IsComplete());
    return token;
  }
}

absl::StatusOr<bool> GenerationSteps::FindForced() {
  if (forced_.empty()) {
    INLAY_ASSIGN_OR_RETURN(forced_, guide_->Forced());
    std::reverse(forced_.begin(), forced_.end());
  }
  return !forced_.empty();
}

absl::StatusOr<int32_t> GenerationSteps::TakeForced() {
  const int32_t token = forced_.back();
  INLAY_ASSIGN_OR_RETURN(const bool accepted, guide_->Accept(token));
  if (!accepted) {
    return absl::InternalError(
        absl::StrCat("token ", token, ", which the shape of the answer demands, is refused by it"));
  }
  INLAY_ASSIGN_OR_RETURN(complete_, guide_->IsComplete());
  forced_.pop_back();
  ++forced_count_;
  return token;
}

void GenerationSteps::Add(int32_t token) {
  tokens_.push_back(token);
  text_ += stop_.Push(characters_.Push(ShownText(tokenizer_, token, options_.shown_control)));
  text_ends_.push_back(text_.size());
}

void GenerationSteps::Cancel() {
  cancelled_ = true;
  if (in_prompt() && !done_) Finish(StopReason::kCancelled);
}

void GenerationSteps::Finish(StopReason reason) {
  text_ += stop_.Push(characters_.Flush());
  if (!stop_.stopped()) text_ += stop_.Flush();
  stop_reason_ = stop_.stopped() ? StopReason::kStopText : reason;
  done_ = true;
}

absl::string_view GenerationSteps::TakeText() {
  const absl::string_view text = absl::string_view(text_).substr(returned_);
  returned_ = text_.size();
  return text;
}

}  // namespace

absl::string_view ShownText(const Tokenizer& tokenizer, int32_t token,
                            absl::Span<const int32_t> shown) {
  const bool is_shown = std::binary_search(shown.begin(), shown.end(), token);
  return is_shown ? tokenizer.TokenText(token) : tokenizer.Piece(token);
}

absl::StatusOr<std::unique_ptr<Generation>> Generation::Begin(const Tokenizer& tokenizer,
                                                              KVCache& cache,
                                                              absl::Span<const int32_t> prompt,
                                                              GenerateOptions options,
                                                              PromptReuse reuse) {
  INLAY_RETURN_IF_ERROR(CheckSampling(options.sampling));
  if (options.draft > DraftedTokens::kMost) {
    return absl::InvalidArgumentError(
        absl::StrCat("a draft of ", options.draft, " tokens is more than ", DraftedTokens::kMost));
  }
  INLAY_RETURN_IF_ERROR(CheckPrompt(cache, prompt));
  INLAY_RETURN_IF_ERROR(CheckScoring(options, prompt.size()));
  return OrOutOfMemory("this answer", [&]() -> absl::StatusOr<std::unique_ptr<Generation>> {
    return std::make_unique<GenerationSteps>(tokenizer, cache, prompt, std::move(options),
                                             std::move(reuse));
  });
}

}  // namespace inlay
