// An answer on its way, one step at a time.
#ifndef INLAY_GEMMA_LIKE_GENERATION_H_
#define INLAY_GEMMA_LIKE_GENERATION_H_

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
#include "gemma_like/prompt_steps.h"
#include "gemma_like/sampler.h"
#include "gemma_like/speculate.h"
#include "gemma_like/stop_matcher.h"
#include "io/tokenizer.h"
#include "io/utf8_stream.h"
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
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  bool done() const { return done_; }
  // Whether some of the prompt is still to be appended.
  bool in_prompt() const { return !prompt_steps_.done(); }
  // For a step of the prompt that found no memory: see PromptSteps.
  bool MakeRoom() { return in_prompt() && prompt_steps_.MakeRoom(); }
  size_t reused() const { return prompt_steps_.reused(); }  // of the prompt's tokens
  // The most rows of logits that a step asks for.
  size_t most_logit_rows() const { return 1 + options_.draft; }

  // What to run next, at most `most` tokens (at least one); not once it is done. It may be called
  // again with another number, where the step found no memory. ResourceExhausted without memory.
  absl::StatusOr<Step> Next(size_t most);

  // The step's tokens are in the conversation, and their logits are [logit_rows, vocab_size].
  // DataLoss when a logit that counts is NaN or infinite, ResourceExhausted without memory; the
  // generation is then done.
  absl::Status Accept(ConstFloatRows logits);

  // Ends it: in the prompt at once, later with the step that appends the token given out last.
  void Cancel();

  // What has become certain since the last call: whole UTF-8 characters, not part of a stop text.
  absl::string_view TakeText();

  const std::string& text() const { return text_; }               // all that became certain
  const std::vector<int32_t>& tokens() const { return tokens_; }  // generated so far
  StopReason stop_reason() const { return stop_reason_; }         // once it is done
  size_t drafted() const { return guesses_.drafted(); }           // tokens guessed
  size_t accepted() const { return guesses_.accepted(); }         // of these, how many came true

 private:
  Generation(const Tokenizer& tokenizer, KVCache& cache, absl::Span<const int32_t> prompt,
             GenerateOptions options, PromptReuse reuse);

  absl::StatusOr<Step> NextStep(size_t most);
  absl::Status AcceptStep(ConstFloatRows logits);
  // Chooses tokens while their logits are at hand.
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
  Guesses guesses_;
  PromptSteps prompt_steps_;  // after the guesses, which must not see what it takes back
  Utf8Stream characters_;
  StopMatcher stop_;
  std::string text_;
  size_t taken_ = 0;  // bytes of text_ that were given out
  std::vector<int32_t> tokens_;
  bool cancelled_ = false;
  bool done_ = false;
  StopReason stop_reason_ = StopReason::kMaxTokens;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GENERATION_H_
