// Streaming generation: a whole answer in one call.
#ifndef INLAY_GEMMA_LIKE_GENERATION_GENERATE_H_
#define INLAY_GEMMA_LIKE_GENERATION_GENERATE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cache/kv_cache.h"
#include "gemma_like/engine.h"
#include "gemma_like/generation/generation.h"
#include "gemma_like/generation/sampler.h"
#include "io/tokenizer/tokenizer.h"

namespace inlay {

class PrefixCache;
struct PrefixCost;

struct GenerateResult {
  std::string text;                 // all that on_text received
  std::vector<int32_t> tokens;      // generated, without an end-of-generation token
  std::vector<ChosenToken> chosen;  // see Generation::chosen()
  StopReason stop_reason = StopReason::kMaxTokens;
  size_t prompt_tokens = 0;
  double prompt_seconds = 0;  // until the first logits
  double decode_seconds = 0;  // after them
  size_t drafted_tokens = 0;
  size_t accepted_tokens = 0;  // of the drafted ones
  size_t forced_tokens = 0;    // about which the grammar left no choice
};

// Appends any number of tokens to a conversation, in as many batches as they need, and writes the
// logits after the last token to `logits` [1, vocab_size]; into [0, vocab_size] it writes none. On
// error or cancellation the conversation is as it was.
absl::Status Prefill(Engine& engine, KVCache& cache, absl::Span<const int32_t> tokens,
                     FloatRows logits, const CancelCheck& cancel = nullptr);

// The same for an empty conversation: reuses the longest prefix in `prefixes`, and stores a
// snapshot there after every `stride` tokens (0: none) and one at the end. When the pool runs out
// of memory, snapshots are evicted. Returns how many tokens were reused and how many computed.
absl::StatusOr<PrefixCost> PrefillThrough(PrefixCache& prefixes, Engine& engine, KVCache& cache,
                                          absl::Span<const int32_t> tokens, size_t stride,
                                          FloatRows logits, const CancelCheck& cancel = nullptr);

// Runs a generation's next step in its conversation; `logits` [most_logit_rows, vocab_size] has
// room for the rows that it needs. The errors of Next, Forward and Accept.
absl::Status RunStep(Engine& engine, KVCache& cache, Generation& generation, FloatRows logits,
                     const CancelCheck& cancel = nullptr);

// Receives text as soon as it is final: complete UTF-8 characters that cannot belong to a stop
// text.
using TextCallback = std::function<void(absl::string_view text)>;

// Called after every step that has generated tokens.
using StepCallback = std::function<void(const Generation& generation)>;

// Runs a Generation from its prompt to its end. Cancelling during the prompt is an error
// (Cancelled); cancelling later ends the answer after the current token. On an error during the
// prompt the conversation is as it was; on a later one it has the prompt and the answer so far,
// perhaps without the tokens of the latest text.
absl::StatusOr<GenerateResult> Generate(Engine& engine, const Tokenizer& tokenizer, KVCache& cache,
                                        absl::Span<const int32_t> prompt,
                                        const GenerateOptions& options,
                                        const TextCallback& on_text = nullptr,
                                        const CancelCheck& cancel = nullptr,
                                        const StepCallback& on_step = nullptr);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GENERATION_GENERATE_H_
