// Several tokens per pass: guesses that the model checks, with the result that it would have had
// without them.
#ifndef INLAY_GEMMA_LIKE_GENERATION_SPECULATE_H_
#define INLAY_GEMMA_LIKE_GENERATION_SPECULATE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cache/kv_cache.h"
#include "gemma_like/engine.h"
#include "ops/views.h"

namespace inlay {

// Guesses how a text goes on.
class Drafter {
 public:
  virtual ~Drafter() = default;
  // Up to `most` tokens that may follow `tokens`; none when it has no idea.
  virtual std::vector<int32_t> Draft(absl::Span<const int32_t> tokens, size_t most) = 0;
};

// Looks for the last tokens of the text earlier in the text and repeats what followed them there
// (prompt lookup: Saxena 2023; Yang et al. 2023, "Inference with Reference"). Of the longest match
// of kMostMatched to kLeastMatched tokens the latest one counts.
class PromptLookup final : public Drafter {
 public:
  static constexpr size_t kMostMatched = 4;
  static constexpr size_t kLeastMatched = 2;
  std::vector<int32_t> Draft(absl::Span<const int32_t> tokens, size_t most) override;
};

// Guessed tokens behind the end of a conversation, appended with its next token in one pass. While
// the tokens that follow equal the guesses, their logits are there already; at the first that does
// not, the cache is rewound to what counts. It runs nothing itself: whoever does, appends what
// Plan() says to the cache, with logits after each token, and then calls Appended().
class Guesses {
 public:
  // The most guesses: within the depth to which every cache can be rewound after an append.
  static constexpr size_t kMost = 16;

  // `drafter` may be null; `most` <= kMost. The cache, and the drafter, must outlive the guesses.
  Guesses(KVCache& cache, Drafter* drafter, size_t most);
  Guesses(const Guesses&) = delete;
  Guesses& operator=(const Guesses&) = delete;
  // Leaves in the cache exactly the tokens that count.
  ~Guesses();

  // The tokens that count: those of the cache without guesses.
  absl::Span<const int32_t> tokens() const { return cache_.tokens().first(length_); }
  // Takes up what was appended to the cache by others, the prompt.
  void Synchronize() { length_ = cache_.length(); }

  // If `token` was guessed, it counts now and its logits are at hand.
  bool Follow(int32_t token);
  // Otherwise: `token` and guesses of what comes after it, at most `most` tokens together (at least
  // one), to be appended. Takes earlier guesses off the cache.
  absl::Span<const int32_t> Plan(int32_t token, size_t most);
  // What Plan() said is in the cache; its first token counts.
  void Appended();

  size_t row() const { return row_; }  // of the last token that counts, among those appended
  size_t drafted() const { return drafted_; }    // tokens guessed
  size_t accepted() const { return accepted_; }  // of these, how many came true

 private:
  void Drop();

  KVCache& cache_;
  Drafter* const drafter_;
  const size_t most_;
  std::vector<int32_t> planned_;
  size_t row_ = 0;
  size_t length_;  // the cache may be longer, by guesses
  size_t drafted_ = 0;
  size_t accepted_ = 0;
};

// A conversation with guesses, one token at a time. After Append(t) the logits and tokens are those
// that the conversation has after t, bit for bit, whatever the drafter guesses.
class DraftedDecoder {
 public:
  DraftedDecoder(Engine& engine, KVCache& cache, Drafter* drafter, size_t most);

  // After the last token [1, vocab_size]; to be filled in before the first Append.
  FloatRows logits() { return FloatRows(&logits_[guesses_.row() * vocab_size_], 1, vocab_size_); }
  // Of the conversation, without guesses.
  absl::Span<const int32_t> tokens() const { return guesses_.tokens(); }

  void Synchronize() { guesses_.Synchronize(); }

  // Errors are those of Engine::Forward; the token is then not part of the conversation.
  absl::Status Append(int32_t token);

  size_t drafted() const { return guesses_.drafted(); }
  size_t accepted() const { return guesses_.accepted(); }

 private:
  Engine& engine_;
  KVCache& cache_;
  Guesses guesses_;
  size_t vocab_size_;
  std::vector<float> logits_;  // [1 + most, vocab_size]
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GENERATION_SPECULATE_H_
