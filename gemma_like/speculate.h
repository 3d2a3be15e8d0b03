// Several tokens per pass: guesses that the model checks, with the result that it would have had
// without them.
#ifndef INLAY_GEMMA_LIKE_SPECULATE_H_
#define INLAY_GEMMA_LIKE_SPECULATE_H_

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

// A conversation on its way, one token at a time, with guesses behind the scenes. After Append(t)
// the logits and tokens are those that the conversation has after t, bit for bit, whatever the
// drafter guesses: guessed tokens are appended with t in one pass; while the tokens that follow
// equal the guesses, their logits are there already; at the first that does not, the cache is
// rewound to what was appended.
class DraftedDecoder {
 public:
  // The longest draft: within the depth to which every cache can be rewound after an append.
  static constexpr size_t kMaxDraft = 16;

  // `drafter` may be null; `most` <= kMaxDraft.
  DraftedDecoder(Engine& engine, KVCache& cache, Drafter* drafter, size_t most);
  DraftedDecoder(const DraftedDecoder&) = delete;
  DraftedDecoder& operator=(const DraftedDecoder&) = delete;
  // Leaves in the cache exactly the tokens appended.
  ~DraftedDecoder();

  // After the last token [1, vocab_size]; to be filled in before the first Append.
  FloatRows logits() { return FloatRows(logits_.data(), rows_, vocab_size_).Slice(row_, 1); }
  absl::Span<const float> logits_after_last() const {
    return absl::MakeConstSpan(logits_).subspan(row_ * vocab_size_, vocab_size_);
  }
  // Of the conversation, without guesses.
  absl::Span<const int32_t> tokens() const { return cache_.tokens().first(length_); }

  // Takes up what was appended to the cache by others, the prompt.
  void Synchronize();

  // Errors are those of Engine::Forward; the token is then not part of the conversation.
  absl::Status Append(int32_t token);

  size_t drafted() const { return drafted_; }    // tokens guessed
  size_t accepted() const { return accepted_; }  // of these, how many came true

 private:
  void DropGuesses();
  absl::Status AppendAll(absl::Span<const int32_t> tokens);

  Engine& engine_;
  KVCache& cache_;
  Drafter* drafter_;
  size_t most_;
  size_t vocab_size_;
  std::vector<float> logits_;  // [1 + most, vocab_size], of which rows_ are filled
  size_t rows_ = 1;
  size_t row_ = 0;     // of the last token appended
  size_t length_ = 0;  // the cache may be longer by rows_ - 1 - row_ guesses
  size_t drafted_ = 0;
  size_t accepted_ = 0;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_SPECULATE_H_
