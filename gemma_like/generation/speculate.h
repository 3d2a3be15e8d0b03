// Speculative decoding: drafted tokens, several of which the model checks in one pass, with the
// same result as without them.
#ifndef INLAY_GEMMA_LIKE_GENERATION_SPECULATE_H_
#define INLAY_GEMMA_LIKE_GENERATION_SPECULATE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cache/kv_cache.h"
#include "gemma_like/engine.h"
#include "gemma_like/generation/sampler.h"
#include "ops/views.h"

namespace inlay {

// Drafts the continuation of a text.
class Drafter {
 public:
  virtual ~Drafter() = default;
  // Told before an answer: how the model will draw its tokens, and its position in the text.
  virtual void StartAnswer(const SamplingOptions& /*sampling*/, size_t /*begin*/) {}
  // Told when an answer pauses between two drafts: gives up the memory that the text takes, which
  // is read again for the next draft.
  virtual void Pause() {}
  // Up to `most` tokens that may follow `tokens`; none when it has no candidates.
  virtual std::vector<int32_t> Draft(absl::Span<const int32_t> tokens, size_t most) = 0;
};

// Searches the text for an earlier occurrence of its last tokens and drafts what followed there
// (prompt lookup: Saxena 2023; Yang et al. 2023, "Inference with Reference"). The longest match of
// kLeastMatched to kMostMatched tokens is used; of several, the latest.
class PromptLookup final : public Drafter {
 public:
  static constexpr size_t kMostMatched = 4;
  static constexpr size_t kLeastMatched = 2;
  std::vector<int32_t> Draft(absl::Span<const int32_t> tokens, size_t most) override;
};

// Drafted tokens after the end of a conversation, appended together with its next token in one
// pass. As long as the tokens chosen next equal the drafted ones, their logits are already
// computed; at the first difference the cache is rewound to the accepted tokens. The class does not
// run the model itself: the caller appends the tokens of Plan() to the cache, with logits after
// each, and then calls Appended().
class DraftedTokens {
 public:
  // The most drafted tokens: within the depth to which every cache can be rewound after an append.
  static constexpr size_t kMost = 16;

  // `drafter` may be null; `most` <= kMost. The cache and the drafter must outlive the object.
  DraftedTokens(KVCache& cache, Drafter* drafter, size_t most);
  DraftedTokens(const DraftedTokens&) = delete;
  DraftedTokens& operator=(const DraftedTokens&) = delete;
  // Removes drafted tokens that were not accepted from the cache; those stay that cannot be rewound
  // for lack of memory.
  ~DraftedTokens();

  // The tokens of the conversation: those of the cache without drafted ones that are not accepted.
  absl::Span<const int32_t> tokens() const { return cache_.tokens().first(length_); }
  // Adopts what others have appended to the cache: the prompt.
  void Synchronize() { length_ = cache_.length(); }

  // If `token` is the next drafted one, accepts it; its logits are then already computed.
  bool Follow(int32_t token);
  // After Follow() returned false: the tokens to append, which are `token` and drafted ones after
  // it, at most `most` >= 1 in total. Removes earlier drafted tokens from the cache; the errors of
  // KVCache::Rewind, after which it may be called again.
  absl::StatusOr<absl::Span<const int32_t>> Plan(int32_t token, size_t most);
  // The same for tokens that are certain: the first `most` >= 1 of them, without any drafted ones.
  absl::StatusOr<absl::Span<const int32_t>> PlanCertain(absl::Span<const int32_t> tokens,
                                                        size_t most);
  // To be called once the tokens of Plan() are in the cache; accepts the first of them, or all that
  // are certain.
  void Appended();

  // The row of the conversation's last token among those of the last append.
  size_t row() const { return row_; }
  size_t drafted() const { return drafted_; }    // drafted tokens checked
  size_t accepted() const { return accepted_; }  // of these, how many were accepted

 private:
  absl::Status Drop();

  KVCache& cache_;
  Drafter* const drafter_;
  const size_t most_;
  std::vector<int32_t> planned_;
  size_t certain_ = 0;  // the tokens at the front of planned_ that were not drafted
  size_t row_ = 0;
  size_t length_;  // of the conversation; the cache may have drafted tokens after it
  size_t drafted_ = 0;
  size_t accepted_ = 0;
};

// A conversation with speculative decoding, one token at a time. After Append(t) the logits and
// tokens are those that the conversation has after t, bit for bit, whatever the drafter returns.
class DraftedDecoder {
 public:
  DraftedDecoder(Engine& engine, KVCache& cache, Drafter* drafter, size_t most);

  // The logits after the last token [1, vocab_size]; the caller fills them in before the first
  // Append.
  FloatRows logits() {
    return FloatRows(&logits_[drafted_tokens_.row() * vocab_size_], 1, vocab_size_);
  }
  // Those of the conversation, without drafted ones.
  absl::Span<const int32_t> tokens() const { return drafted_tokens_.tokens(); }

  void Synchronize() { drafted_tokens_.Synchronize(); }

  // Errors are those of Engine::Forward; the token is then not in the conversation.
  absl::Status Append(int32_t token);

  size_t drafted() const { return drafted_tokens_.drafted(); }
  size_t accepted() const { return drafted_tokens_.accepted(); }

 private:
  Engine& engine_;
  KVCache& cache_;
  DraftedTokens drafted_tokens_;
  size_t vocab_size_;
  std::vector<float> logits_;  // [1 + most, vocab_size]
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GENERATION_SPECULATE_H_
