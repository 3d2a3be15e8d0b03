// An answer on its way, one step at a time.
#ifndef INLAY_GEMMA_LIKE_GENERATION_GENERATION_H_
#define INLAY_GEMMA_LIKE_GENERATION_GENERATION_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cache/kv_cache.h"
#include "gemma_like/generation/prompt_reuse.h"
#include "gemma_like/generation/sampler.h"
#include "io/tokenizer/tokenizer.h"
#include "ops/views.h"

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
  // Guess up to so many tokens (at most Guesses::kMost) from the text so far and check them in one
  // pass; the answer is the same. 0: none.
  size_t draft = 0;
};

// A prompt into a conversation, then tokens until something says stop. It runs nothing itself: the
// caller appends what Next() says to the conversation, alone or in a batch with others' steps, and
// gives Accept() the logits. The answer does not depend on how the steps were cut.
//
//   while (!generation.done()) {
//     step = generation.Next(budget);
//     engine.Forward({{.cache = &cache, .tokens = step.tokens, .logit_rows = step.logit_rows}, ...
//     generation.Accept(logits);
//     show(generation.TakeText());
//   }
//
// Every generated token becomes part of the conversation, also those of a stop text; an
// end-of-generation token does not. Whatever is left of a generation that ends in its prompt, by an
// error, cancelled or destroyed, is taken back: the conversation is as it was. One that ends later
// leaves what it has generated so far.
class Generation {
 public:
  struct Step {
    absl::Span<const int32_t> tokens;  // to append; valid until the next call
    size_t logit_rows = 0;             // after the last so many of them
  };

  // The tokenizer and the cache must outlive the generation, and nobody else changes the cache
  // meanwhile. InvalidArgument for options out of range, the errors of CheckPrompt,
  // ResourceExhausted without memory.
  static absl::StatusOr<std::unique_ptr<Generation>> Begin(const Tokenizer& tokenizer,
                                                           KVCache& cache,
                                                           absl::Span<const int32_t> prompt,
                                                           GenerateOptions options,
                                                           PromptReuse reuse = {});
  virtual ~Generation() = default;
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  virtual bool done() const = 0;
  // Whether some of the prompt is still to be appended.
  virtual bool in_prompt() const = 0;
  // For a step of the prompt that found no memory: drops the snapshot of `reuse` that has not been
  // used for longest; false when there is none.
  virtual bool MakeRoom() = 0;
  virtual size_t reused() const = 0;  // of the prompt's tokens, once Next() was called
  // The most rows of logits that a step asks for.
  virtual size_t most_logit_rows() const = 0;

  // What to run next, at most `most` tokens (at least one); not once it is done. It may be called
  // again with another number, where the step found no memory. ResourceExhausted without memory.
  virtual absl::StatusOr<Step> Next(size_t most) = 0;

  // The step's tokens are in the conversation, and their logits are [logit_rows, vocab_size].
  // DataLoss when a logit that counts is NaN or infinite, ResourceExhausted without memory; the
  // generation is then done.
  virtual absl::Status Accept(ConstFloatRows logits) = 0;

  // Ends it: in the prompt at once, later with the step that appends the token given out last.
  virtual void Cancel() = 0;

  // What has become certain since the last call: whole UTF-8 characters, not part of a stop text.
  virtual absl::string_view TakeText() = 0;

  virtual const std::string& text() const = 0;             // all that became certain
  virtual const std::vector<int32_t>& tokens() const = 0;  // generated so far
  virtual StopReason stop_reason() const = 0;              // once it is done
  virtual size_t drafted() const = 0;                      // tokens guessed
  virtual size_t accepted() const = 0;                     // of these, how many came true

 protected:
  Generation() = default;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GENERATION_GENERATION_H_
