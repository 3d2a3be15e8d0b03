// Generates an answer, one step at a time.
#ifndef INLAY_GEMMA_LIKE_GENERATION_GENERATION_H_
#define INLAY_GEMMA_LIKE_GENERATION_GENERATION_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
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

struct AnswerGrammar;
class Drafter;

enum class StopReason { kMaxTokens, kEndOfGeneration, kStopText, kContextFull, kCancelled };

// "length", "end", "stop", "context", "cancelled".
absl::string_view StopReasonName(StopReason reason);

// The most rows of logits that a step of a prompt computes for GenerateOptions::score_from: enough
// for steps that are nearly as fast as longer ones, and 32 MiB with a vocabulary of 262,144 tokens.
inline constexpr size_t kMostScoredRows = 32;

// What a generated token shows in a text: its bytes; of a control token, which has none, how the
// vocabulary writes it if it is one of `shown` (ascending). They need not be whole characters.
absl::string_view ShownText(const Tokenizer& tokenizer, int32_t token,
                            absl::Span<const int32_t> shown);

struct GenerateOptions {
  SamplingOptions sampling;
  size_t max_tokens = std::numeric_limits<size_t>::max();
  // Generation ends before the first of these texts, which is not in the answer.
  std::vector<std::string> stop_texts;
  bool ignore_eos = false;  // continue after an end-of-generation token
  // The bytes of a character that the end of the prompt begins, and the answer's text with it.
  std::string begun = {};
  // These control tokens, ascending, appear in the text as the vocabulary writes them ("<think>"),
  // for callers that look for the parts of an answer.
  std::vector<int32_t> shown_control = {};
  // Chosen() tells the probability of each token of the answer, and those of the `top_chances` most
  // likely tokens in its place.
  std::optional<size_t> top_chances = std::nullopt;
  // With top_chances: Chosen() begins with the prompt's tokens from this position on, 1 (the first
  // one follows nothing) to the prompt's length, which come with their probabilities, too.
  std::optional<size_t> score_from = std::nullopt;
  // Rows of logits in one step of the prompt for them, 1 to kMostScoredRows; the probabilities are
  // the same.
  size_t scored_rows = kMostScoredRows;
  // With top_chances: Chosen() ends with the end-of-generation token if one ended the answer.
  bool end_chance = false;
  // Draft up to `draft` tokens (at most DraftedTokens::kMost) and check them in one pass; the
  // answer is the same. 0: none.
  size_t draft = 0;
  // Who drafts, for one answer at a time; null: prompt lookup (see speculate.h).
  std::shared_ptr<Drafter> drafter = nullptr;
  // The shape of the answer (see grammar/answer_grammars.h). Tokens are chosen among those that may
  // come next as if there were no others; text that must come is appended in one pass; the answer
  // ends with the shape, whatever ignore_eos says. Limits and stop texts may end it before.
  std::shared_ptr<const AnswerGrammar> grammar = nullptr;
};

// InvalidArgument naming the option of these when tokens of a prompt of this length cannot be
// scored as `options` ask.
absl::Status CheckScoring(const GenerateOptions& options, size_t prompt_tokens);

// The options, which have passed CheckSampling, with the tokens suppressed that the file says are
// never generated: by biases beyond what CheckSampling allows.
SamplingOptions WithoutSuppressed(SamplingOptions options, const Tokenizer& tokenizer);

// The logits of tokens in a row: the embedding may have more rows than there are tokens, for
// padding.
absl::Span<const float> TokenLogits(const Tokenizer& tokenizer, absl::Span<const float> row);

// Appends a prompt to a conversation, then generates tokens until a stop condition holds. It does
// not run the model itself: the caller appends the tokens of Next() to the conversation, alone or
// in a batch with steps of other conversations, and passes the logits to Accept(). The answer does
// not depend on the sizes of the steps.
//
//   while (!generation.done()) {
//     step = generation.Next(budget);
//     engine.Forward({{.cache = &cache, .tokens = step.tokens, .logit_rows = step.logit_rows}, ...
//     generation.Accept(logits);
//     show(generation.TakeText());
//   }
//
// Every generated token is added to the conversation, including those of a stop text; an
// end-of-generation token is not. A generation that ends within its prompt (by an error, Cancel()
// or destruction) leaves the conversation as it was. One that ends later leaves what it has
// generated so far.
class Generation {
 public:
  struct Step {
    absl::Span<const int32_t> tokens;  // to append; valid until the next call
    size_t logit_rows = 0;             // logits are needed after the last logit_rows tokens
  };

  // The tokenizer and the cache must outlive the generation, and nothing else may change the cache
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
  // Whether tokens of the prompt are still to be appended.
  virtual bool in_prompt() const = 0;
  // For a step of the prompt that failed for lack of memory: evicts the least recently used
  // snapshot of `reuse`; false when there is none.
  virtual bool MakeRoom() = 0;
  // Tokens of the prompt reused from a snapshot, known once Next() was called.
  virtual size_t reused() const = 0;
  // The tokens of the conversation: those of the cache without drafted ones that are not accepted.
  // Between steps after the prompt the caller may take the cache's memory away (Restore an empty
  // conversation), if it appends these tokens again before the next step.
  virtual absl::Span<const int32_t> conversation() const = 0;
  // The most rows of logits that any step needs.
  virtual size_t most_logit_rows() const = 0;

  // The tokens after the prompt that are chosen and not yet in the conversation: one, or more where
  // a grammar leaves no choice.
  virtual size_t pending() const = 0;

  // The step to run next, at most `most` >= 1 tokens. Must not be called once done(). May be called
  // again with another `most` if the step failed for lack of memory. ResourceExhausted without
  // memory.
  virtual absl::StatusOr<Step> Next(size_t most) = 0;

  // To be called once the step's tokens are in the conversation, with their logits [logit_rows,
  // vocab_size]. DataLoss when a logit that is needed is NaN or infinite, ResourceExhausted without
  // memory; the generation is then done.
  virtual absl::Status Accept(ConstFloatRows logits) = 0;

  // Ends the generation: within the prompt at once, later with the step that appends the last token
  // of the text.
  virtual void Cancel() = 0;

  // The text that became final since the last call: complete UTF-8 characters that cannot belong to
  // a stop text.
  virtual absl::string_view TakeText() = 0;

  virtual const std::string& text() const = 0;             // all final text
  virtual const std::vector<int32_t>& tokens() const = 0;  // generated so far
  // The size of text() when token i of tokens() was added, before those that came in the same step.
  virtual size_t text_end(size_t i) const = 0;
  // The tokens with their probabilities, if GenerateOptions::top_chances asks for them; before them
  // those of the prompt that are scored.
  virtual const std::vector<ChosenToken>& chosen() const = 0;
  virtual StopReason stop_reason() const = 0;        // once it is done
  virtual const std::string& stop_text() const = 0;  // which one, for kStopText
  virtual size_t drafted() const = 0;                // drafted tokens checked
  virtual size_t accepted() const = 0;               // of these, how many were accepted
  virtual size_t forced() const = 0;                 // tokens that the grammar left no choice about

 protected:
  Generation() = default;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GENERATION_GENERATION_H_
