// Streaming generation: a prompt into a conversation, then tokens until something says stop.
#ifndef INLAY_GEMMA_LIKE_GENERATE_H_
#define INLAY_GEMMA_LIKE_GENERATE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cache/kv_cache.h"
#include "gemma_like/engine.h"
#include "gemma_like/sampler.h"
#include "io/tokenizer.h"

namespace inlay {

enum class StopReason { kMaxTokens, kEndOfGeneration, kStopText, kContextFull, kCancelled };

// "length", "end", "stop", "context", "cancelled".
absl::string_view StopReasonName(StopReason reason);

struct GenerateOptions {
  SamplingOptions sampling;
  size_t max_tokens = std::numeric_limits<size_t>::max();
  std::vector<std::string>
      stop_texts;           // generation ends before the first of them; it is not given out
  bool ignore_eos = false;  // go on after an end-of-generation token
  // Guess up to so many tokens (at most DraftedDecoder::kMaxDraft) from the text so far and check
  // them in one pass; the answer is the same. 0: none.
  size_t draft = 0;
};

struct GenerateResult {
  std::string text;             // all that was given out
  std::vector<int32_t> tokens;  // generated, without the token that ended it
  StopReason stop_reason = StopReason::kMaxTokens;
  size_t prompt_tokens = 0;
  double prompt_seconds = 0;   // until the first logits
  double decode_seconds = 0;   // after them
  size_t drafted_tokens = 0;   // guessed
  size_t accepted_tokens = 0;  // of these, how many came true
};

// What can be said before a prompt is computed: InvalidArgument when it is empty, OutOfRange when
// the conversation has too little room for it.
absl::Status CheckPrompt(const KVCache& cache, absl::Span<const int32_t> tokens);

// What CheckPrompt says of so many tokens; `qualifier` stands before their number ("at least ").
absl::Status PromptTooLong(const KVCache& cache, size_t tokens, absl::string_view qualifier = "");

// Appends tokens of any number to a conversation, in as many batches as they need, and writes the
// logits after the last to `logits` [1, vocab_size], or none to [0, vocab_size]. On error or
// cancellation the conversation is as it was.
absl::Status Prefill(Engine& engine, KVCache& cache, absl::Span<const int32_t> tokens,
                     FloatRows logits, const CancelCheck& cancel = nullptr);

// Receives text as soon as it is certain: whole UTF-8 characters, not part of a stop text.
using TextCallback = std::function<void(absl::string_view text)>;

// Appends `prompt` (at least one token) to the conversation and generates from there. Every
// generated token is appended too, also those of a stop text; an end-of-generation token is not. On
// an error in the prompt the conversation is as it was, and cancelling in the prompt is such an
// error (Cancelled); cancelling later ends the answer after the token at hand.
absl::StatusOr<GenerateResult> Generate(Engine& engine, const Tokenizer& tokenizer, KVCache& cache,
                                        absl::Span<const int32_t> prompt,
                                        const GenerateOptions& options,
                                        const TextCallback& on_text = nullptr,
                                        const CancelCheck& cancel = nullptr);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GENERATE_H_
