#include "gemma_like/generation/generation.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "base/utf8_stream.h"
#include "gemma_like/generation/prompt_steps.h"
#include "gemma_like/generation/speculate.h"
#include "gemma_like/generation/stop_matcher.h"

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

namespace {

class GenerationSteps final : public Generation {
 public:
  GenerationSteps(const Tokenizer& tokenizer, KVCache& cache, absl::Span<const int32_t> prompt,
                  GenerateOptions options, PromptReuse reuse);

  bool done() const override { return done_; }
  bool in_prompt() const override { return !prompt_steps_.done(); }
  bool MakeRoom() override { return in_prompt() && prompt_steps_.MakeRoom(); }
  size_t reused() const override { return prompt_steps_.reused(); }
  size_t most_logit_rows() const override { return 1 + options_.draft; }
  absl::StatusOr<Step> Next(size_t most) override;
  absl::Status Accept(ConstFloatRows logits) override;
  void Cancel() override;
  absl::string_view TakeText() override;
  const std::string& text() const override { return text_; }
  const std::vector<int32_t>& tokens() const override { return tokens_; }
  const std::vector<ChosenToken>& chosen() const override { return chosen_; }
  StopReason stop_reason() const override { return stop_reason_; }
  const std::string& stop_text() const override { return stop_.found(); }
  absl::Span<const int32_t> conversation() const override {
    return in_prompt() ? cache_.tokens() : drafted_tokens_.tokens();
  }
  size_t drafted() const override { return drafted_tokens_.drafted(); }
  size_t accepted() const override { return drafted_tokens_.accepted(); }

 private:
  absl::StatusOr<Step> NextStep(size_t most);
  absl::Status AcceptStep(ConstFloatRows logits);
  // Samples tokens as long as their logits have been computed.
  absl::Status Choose(ConstFloatRows logits);
  void Finish(StopReason reason);
  // Whether the token chosen last ends the answer once it is appended.
  bool Ends() const;

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
  std::string text_;
  size_t returned_ = 0;  // bytes of text_ that TakeText() has returned
  std::vector<int32_t> tokens_;
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
      options_(std::move(options)),
      prompt_(prompt.begin(), prompt.end()),
      sampler_(options_.sampling),
      drafted_tokens_(cache, &lookup_, options_.draft),
      prompt_steps_(cache, prompt_, std::move(reuse)),
      stop_(options_.stop_texts) {}

absl::StatusOr<Generation::Step> GenerationSteps::Next(size_t most) {
  assert(!done_ && most > 0);
  return OrOutOfMemory("this answer", [&] { return NextStep(most); });
}

absl::StatusOr<Generation::Step> GenerationSteps::NextStep(size_t most) {
  if (in_prompt()) {
    INLAY_ASSIGN_OR_RETURN(const absl::Span<const int32_t> tokens, prompt_steps_.Next(most));
    const bool wanted = prompt_steps_.last() && options_.max_tokens > 0;
    return Step{.tokens = tokens, .logit_rows = wanted ? size_t{1} : size_t{0}};
  }
  if (Ends()) return Step{.tokens = drafted_tokens_.Plan(tokens_.back(), 1), .logit_rows = 0};
  const absl::Span<const int32_t> tokens = drafted_tokens_.Plan(tokens_.back(), most);
  return Step{.tokens = tokens, .logit_rows = tokens.size()};
}

bool GenerationSteps::Ends() const {
  return stop_.stopped() || cancelled_ || tokens_.size() >= options_.max_tokens ||
         drafted_tokens_.tokens().size() + 1 >= cache_.max_length();
}

absl::Status GenerationSteps::Accept(ConstFloatRows logits) {
  const absl::Status status = OrOutOfMemory("this answer", [&] { return AcceptStep(logits); });
  if (!status.ok()) done_ = true;
  return status;
}

absl::Status GenerationSteps::AcceptStep(ConstFloatRows logits) {
  if (in_prompt()) {
    prompt_steps_.Accept();
    if (in_prompt()) return absl::OkStatus();
    drafted_tokens_.Synchronize();
  } else {
    drafted_tokens_.Appended();
  }
  return Choose(logits);
}

absl::Status GenerationSteps::Choose(ConstFloatRows logits) {
  do {
    if (stop_.stopped()) {
      Finish(StopReason::kStopText);
    } else if (tokens_.size() >= options_.max_tokens) {
      Finish(StopReason::kMaxTokens);
    } else if (drafted_tokens_.tokens().size() >= cache_.max_length()) {
      Finish(StopReason::kContextFull);
    } else if (cancelled_) {
      Finish(StopReason::kCancelled);
    }
    if (done_) return absl::OkStatus();
    // The embedding may have more rows than there are tokens, for padding.
    const size_t tokens = tokenizer_.size() == 0 ? logits.cols : tokenizer_.size();
    const absl::Span<const float> row(logits.Row(drafted_tokens_.row()),
                                      std::min(tokens, logits.cols));
    INLAY_ASSIGN_OR_RETURN(const int32_t token,
                           sampler_.Sample(row, drafted_tokens_.tokens(), tokens_.size()));
    if (!options_.ignore_eos && tokenizer_.IsEndOfGeneration(token)) {
      Finish(StopReason::kEndOfGeneration);
      return absl::OkStatus();
    }
    tokens_.push_back(token);
    if (options_.top_chances.has_value())
      chosen_.push_back(ChanceOf(row, token, *options_.top_chances));
    const bool shown =
        std::binary_search(options_.shown_control.begin(), options_.shown_control.end(), token);
    text_ +=
        stop_.Push(characters_.Push(shown ? tokenizer_.TokenText(token) : tokenizer_.Piece(token)));
  } while (drafted_tokens_.Follow(tokens_.back()));
  return absl::OkStatus();
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
  return OrOutOfMemory("this answer", [&]() -> absl::StatusOr<std::unique_ptr<Generation>> {
    return std::make_unique<GenerationSteps>(tokenizer, cache, prompt, std::move(options),
                                             std::move(reuse));
  });
}

}  // namespace inlay
