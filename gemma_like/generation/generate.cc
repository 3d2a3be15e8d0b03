#include "gemma_like/generation/generate.h"

#include <cassert>
#include <chrono>
#include <memory>
#include <utility>

#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "gemma_like/generation/prefix_cache.h"
#include "gemma_like/generation/prompt_steps.h"

namespace inlay {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

absl::Status RunPrompt(Engine& engine, KVCache& cache, PromptSteps& steps, FloatRows logits,
                       const CancelCheck& cancel) {
  while (!steps.done()) {
    INLAY_ASSIGN_OR_RETURN(const absl::Span<const int32_t> tokens,
                           steps.Next(engine.info().max_batch));
    const FloatRows rows = steps.last() ? logits : FloatRows(nullptr, 0, logits.cols);
    const SequenceStep step{.cache = &cache, .tokens = tokens, .logit_rows = rows.rows};
    const absl::Status status = engine.Forward({&step, 1}, rows, cancel);
    if (absl::IsResourceExhausted(status) && steps.MakeRoom()) continue;
    INLAY_RETURN_IF_ERROR(status);
    steps.Accept();
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Prefill(Engine& engine, KVCache& cache, absl::Span<const int32_t> tokens,
                     FloatRows logits, const CancelCheck& cancel) {
  INLAY_RETURN_IF_ERROR(CheckPrompt(cache, tokens));
  PromptSteps steps(cache, tokens);
  return RunPrompt(engine, cache, steps, logits, cancel);
}

absl::StatusOr<PrefixCost> PrefillThrough(PrefixCache& prefixes, Engine& engine, KVCache& cache,
                                          absl::Span<const int32_t> tokens, size_t stride,
                                          FloatRows logits, const CancelCheck& cancel) {
  assert(cache.length() == 0);
  INLAY_RETURN_IF_ERROR(CheckPrompt(cache, tokens));
  PromptSteps steps(cache, tokens, {.prefixes = &prefixes, .stride = stride});
  INLAY_RETURN_IF_ERROR(RunPrompt(engine, cache, steps, logits, cancel));
  return PrefixCost{.reused = steps.reused(), .computed = tokens.size() - steps.reused()};
}

absl::Status RunStep(Engine& engine, KVCache& cache, Generation& generation, FloatRows logits,
                     const CancelCheck& cancel) {
  const auto run = [&](size_t most) -> absl::Status {
    INLAY_ASSIGN_OR_RETURN(const Generation::Step step, generation.Next(most));
    const SequenceStep sequence{
        .cache = &cache, .tokens = step.tokens, .logit_rows = step.logit_rows};
    INLAY_RETURN_IF_ERROR(engine.Forward({&sequence, 1}, logits.Slice(0, step.logit_rows), cancel));
    return generation.Accept(logits.Slice(0, step.logit_rows));
  };
  // Drafted tokens need memory: where there is too little of it, a token alone may still fit.
  const absl::Status status = run(engine.info().max_batch);
  if (!absl::IsResourceExhausted(status) || generation.in_prompt() || generation.done()) {
    return status;
  }
  return run(1);
}

namespace {

absl::StatusOr<GenerateResult> GenerateAll(Engine& engine, const Tokenizer& tokenizer,
                                           KVCache& cache, absl::Span<const int32_t> prompt,
                                           const GenerateOptions& options,
                                           const TextCallback& on_text, const CancelCheck& cancel,
                                           const StepCallback& on_step) {
  INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<Generation> generation,
                         Generation::Begin(tokenizer, cache, prompt, options));
  const size_t vocab_size = engine.info().vocab_size;
  std::vector<float> memory(generation->most_logit_rows() * vocab_size);
  const FloatRows logits(memory.data(), generation->most_logit_rows(), vocab_size);
  const Clock::time_point start = Clock::now();
  Clock::time_point prompt_end = start;
  while (!generation->done()) {
    const bool in_prompt = generation->in_prompt();
    // After the prompt no step is cancelled midway: the conversation must contain all text shown.
    INLAY_RETURN_IF_ERROR(
        RunStep(engine, cache, *generation, logits, in_prompt ? cancel : CancelCheck()));
    if (in_prompt) prompt_end = Clock::now();
    if (const absl::string_view text = generation->TakeText(); !text.empty() && on_text) {
      on_text(text);
    }
    if (on_step && !generation->in_prompt()) on_step(*generation);
    if (!generation->in_prompt() && cancel && cancel()) generation->Cancel();
  }
  if (const absl::string_view text = generation->TakeText(); !text.empty() && on_text) {
    on_text(text);
  }
  return GenerateResult{.text = generation->text(),
                        .tokens = generation->tokens(),
                        .chosen = generation->chosen(),
                        .stop_reason = generation->stop_reason(),
                        .prompt_tokens = prompt.size(),
                        .prompt_seconds = std::chrono::duration<double>(prompt_end - start).count(),
                        .decode_seconds = SecondsSince(prompt_end),
                        .drafted_tokens = generation->drafted(),
                        .accepted_tokens = generation->accepted(),
                        .forced_tokens = generation->forced()};
}

}  // namespace

absl::StatusOr<GenerateResult> Generate(Engine& engine, const Tokenizer& tokenizer, KVCache& cache,
                                        absl::Span<const int32_t> prompt,
                                        const GenerateOptions& options, const TextCallback& on_text,
                                        const CancelCheck& cancel, const StepCallback& on_step) {
  return OrOutOfMemory("this answer", [&] {
    return GenerateAll(engine, tokenizer, cache, prompt, options, on_text, cancel, on_step);
  });
}

}  // namespace inlay
