#include "gemma_like/generate.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "cache/out_of_memory.h"
#include "io/status_macros.h"

namespace inlay {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

absl::Status Prefill(Engine& engine, KVCache& cache, absl::Span<const int32_t> tokens,
                     FloatRows logits, const CancelCheck& cancel) {
  INLAY_RETURN_IF_ERROR(CheckPrompt(cache, tokens));
  const size_t most = std::min(engine.info().max_batch, cache.max_append());
  // One batch is a transaction already. Several become one by way of a snapshot to go back to.
  std::unique_ptr<KVCache> snapshot;
  if (tokens.size() > most) {
    INLAY_RETURN_IF_ERROR(OrOutOfMemory("a snapshot", [&] {
      snapshot = cache.Fork();
      return absl::OkStatus();
    }));
  }
  while (!tokens.empty()) {
    const size_t n = std::min(most, tokens.size());
    const bool last = n == tokens.size();
    const SequenceStep step{
        .cache = &cache, .tokens = tokens.first(n), .logit_rows = last ? logits.rows : size_t{0}};
    absl::Status status =
        engine.Forward({&step, 1}, last ? logits : FloatRows(nullptr, 0, logits.cols), cancel);
    if (!status.ok()) {
      if (snapshot != nullptr) status.Update(cache.Restore(std::move(*snapshot)));
      return status;
    }
    tokens.remove_prefix(n);
  }
  return absl::OkStatus();
}

namespace {

// Appends the generation's next step, of which `logits` [most_logit_rows, vocab_size] gets what it
// asks for.
absl::Status RunStep(Engine& engine, KVCache& cache, Generation& generation, FloatRows logits,
                     const CancelCheck& cancel) {
  const auto run = [&](size_t most) -> absl::Status {
    INLAY_ASSIGN_OR_RETURN(const Generation::Step step, generation.Next(most));
    const SequenceStep sequence{
        .cache = &cache, .tokens = step.tokens, .logit_rows = step.logit_rows};
    INLAY_RETURN_IF_ERROR(engine.Forward({&sequence, 1}, logits.Slice(0, step.logit_rows), cancel));
    return generation.Accept(logits.Slice(0, step.logit_rows));
  };
  // An answer that was shown in part is not cancelled half-way: what was shown is in the
  // conversation. Guesses need memory; where there is too little of it, a token alone may still
  // fit.
  const bool in_prompt = generation.in_prompt();
  const absl::Status status = run(engine.info().max_batch);
  return absl::IsResourceExhausted(status) && !in_prompt && !generation.done() ? run(1) : status;
}

absl::StatusOr<GenerateResult> GenerateAll(Engine& engine, const Tokenizer& tokenizer,
                                           KVCache& cache, absl::Span<const int32_t> prompt,
                                           const GenerateOptions& options,
                                           const TextCallback& on_text, const CancelCheck& cancel) {
  INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<Generation> generation,
                         Generation::Begin(tokenizer, cache, prompt, options));
  const size_t vocab_size = engine.info().vocab_size;
  std::vector<float> memory(generation->most_logit_rows() * vocab_size);
  const FloatRows logits(memory.data(), generation->most_logit_rows(), vocab_size);
  const Clock::time_point start = Clock::now();
  Clock::time_point prompt_end = start;
  while (!generation->done()) {
    const bool in_prompt = generation->in_prompt();
    INLAY_RETURN_IF_ERROR(
        RunStep(engine, cache, *generation, logits, in_prompt ? cancel : CancelCheck()));
    if (in_prompt) prompt_end = Clock::now();
    if (const absl::string_view text = generation->TakeText(); !text.empty() && on_text) {
      on_text(text);
    }
    if (!generation->in_prompt() && cancel && cancel()) generation->Cancel();
  }
  if (const absl::string_view text = generation->TakeText(); !text.empty() && on_text) {
    on_text(text);
  }
  return GenerateResult{.text = generation->text(),
                        .tokens = generation->tokens(),
                        .stop_reason = generation->stop_reason(),
                        .prompt_tokens = prompt.size(),
                        .prompt_seconds = std::chrono::duration<double>(prompt_end - start).count(),
                        .decode_seconds = SecondsSince(prompt_end),
                        .drafted_tokens = generation->drafted(),
                        .accepted_tokens = generation->accepted()};
}

}  // namespace

absl::StatusOr<GenerateResult> Generate(Engine& engine, const Tokenizer& tokenizer, KVCache& cache,
                                        absl::Span<const int32_t> prompt,
                                        const GenerateOptions& options, const TextCallback& on_text,
                                        const CancelCheck& cancel) {
  return OrOutOfMemory("this answer", [&] {
    return GenerateAll(engine, tokenizer, cache, prompt, options, on_text, cancel);
  });
}

}  // namespace inlay
