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
#include "io/tokenizer/tokenizer.h"

namespace inlay {

class PrefixCache;
struct PrefixCost;

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

// Appends tokens of any number to a conversation, in as many batches as they need, and writes the
// logits after the last to `logits` [1, vocab_size], or none to [0, vocab_size]. On error or
// cancellation the conversation is as it was.
absl::Status Prefill(Engine& engine, KVCache& cache, absl::Span<const int32_t> tokens,
                     FloatRows logits, const CancelCheck& cancel = nullptr);

// The same for an empty conversation: takes over what `prefixes` has, and leaves a snapshot after
// every `stride` tokens (0: none) and one at the end there. When the pool has too little left,
// snapshots are dropped for it. Returns what it cost.
absl::StatusOr<PrefixCost> PrefillThrough(PrefixCache& prefixes, Engine& engine, KVCache& cache,
                                          absl::Span<const int32_t> tokens, size_t stride,
                                          FloatRows logits, const CancelCheck& cancel = nullptr);

// Receives text as soon as it is certain: whole UTF-8 characters, not part of a stop text.
using TextCallback = std::function<void(absl::string_view text)>;

// A Generation from its prompt to its end. Cancelling in the prompt is an error (Cancelled);
// cancelling later ends the answer after the token at hand.
absl::StatusOr<GenerateResult> Generate(Engine& engine, const Tokenizer& tokenizer, KVCache& cache,
                                        absl::Span<const int32_t> prompt,
                                        const GenerateOptions& options,
                                        const TextCallback& on_text = nullptr,
                                        const CancelCheck& cancel = nullptr);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GENERATION_GENERATE_H_
