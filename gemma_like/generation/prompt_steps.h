// Appends a prompt to a conversation, one step at a time.
#ifndef INLAY_GEMMA_LIKE_GENERATION_PROMPT_STEPS_H_
#define INLAY_GEMMA_LIKE_GENERATION_PROMPT_STEPS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cache/kv_cache.h"
#include "gemma_like/generation/prefix_cache.h"
#include "gemma_like/generation/prompt_reuse.h"

namespace inlay {

// The errors that are known before a prompt is computed: InvalidArgument when it is empty,
// OutOfRange when the conversation has too little room for it.
absl::Status CheckPrompt(const KVCache& cache, absl::Span<const int32_t> tokens);

// The error of CheckPrompt for a prompt of `tokens` tokens; `qualifier` precedes their number ("at
// least ").
absl::Status PromptTooLong(const KVCache& cache, size_t tokens, absl::string_view qualifier = "");

// After which tokens of a prompt logits are needed, besides the last one.
struct PromptRows {
  size_t from = std::numeric_limits<size_t>::max();  // after each one from this position on
  size_t most = 1;  // the most rows of logits in one step, 1 or more
};

// The caller appends the tokens of Next() to the conversation, alone or in a batch with steps of
// other conversations, and then calls Accept(). If the object is destroyed before the whole prompt
// is appended, the conversation is restored to its state before the prompt.
class PromptSteps {
 public:
  // `tokens` have passed CheckPrompt. They and the cache must outlive the steps, and nothing else
  // may change the cache meanwhile. A stored prefix is reused only in an empty conversation, and
  // only as far as no rows are needed.
  PromptSteps(KVCache& cache, absl::Span<const int32_t> tokens, PromptReuse reuse = {},
              PromptRows rows = {})
      : cache_(cache), tokens_(tokens), reuse_(std::move(reuse)), rows_(rows) {}
  PromptSteps(const PromptSteps&) = delete;
  PromptSteps& operator=(const PromptSteps&) = delete;
  ~PromptSteps();

  bool done() const { return done_ == tokens_.size(); }

  // The tokens to append next, at most `most` >= 1. Must not be called once done(). May be called
  // again with another `most` if the step failed for lack of memory. ResourceExhausted without
  // memory.
  absl::StatusOr<absl::Span<const int32_t>> Next(size_t most);
  // Whether the step that Next() returned ends the prompt.
  bool last() const { return end() == tokens_.size(); }
  // The position after that step, and how many of its last tokens PromptRows names.
  size_t end() const { return done_ + step_; }
  size_t rows() const { return end() - std::min(end(), std::max(done_, rows_.from)); }

  // To be called once the step is in the conversation.
  void Accept();

  // Evicts the least recently used snapshot; false when there is none. For a step that failed for
  // lack of memory: running conversations come before snapshots.
  bool MakeRoom() { return reuse_.prefixes != nullptr && reuse_.prefixes->DropOldest(); }

  // Tokens reused from a snapshot, known once Next() was called.
  size_t reused() const { return reused_; }

 private:
  absl::Status Start();
  // The next position after the tokens that are done at which a snapshot is to be stored.
  size_t NextSnapshot() const;

  KVCache& cache_;
  const absl::Span<const int32_t> tokens_;
  const PromptReuse reuse_;
  const PromptRows rows_;
  bool started_ = false;
  size_t reused_ = 0;
  size_t done_ = 0;  // tokens that are in the conversation
  size_t step_ = 0;  // tokens of the current step
  // The conversation before the prompt, to restore; null if the prompt is a single step, which the
  // cache undoes itself.
  std::unique_ptr<KVCache> before_;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GENERATION_PROMPT_STEPS_H_
