// A prompt on its way into a conversation, one step at a time.
#ifndef INLAY_GEMMA_LIKE_GENERATION_PROMPT_STEPS_H_
#define INLAY_GEMMA_LIKE_GENERATION_PROMPT_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cache/kv_cache.h"
#include "gemma_like/generation/prefix_cache.h"
#include "gemma_like/generation/prompt_reuse.h"

namespace inlay {

// What can be said before a prompt is computed: InvalidArgument when it is empty, OutOfRange when
// the conversation has too little room for it.
absl::Status CheckPrompt(const KVCache& cache, absl::Span<const int32_t> tokens);

// What CheckPrompt says of so many tokens; `qualifier` stands before their number ("at least ").
absl::Status PromptTooLong(const KVCache& cache, size_t tokens, absl::string_view qualifier = "");

// The caller appends what Next() says to the conversation, alone or in a batch with others' steps,
// and then calls Accept(). Until all of it is there, the conversation can be as it was: that is
// what it becomes when the steps are destroyed before.
class PromptSteps {
 public:
  // `tokens` have passed CheckPrompt. They and the cache must outlive the steps, and nobody else
  // changes the cache meanwhile. Beginnings are taken over into an empty conversation only.
  PromptSteps(KVCache& cache, absl::Span<const int32_t> tokens, PromptReuse reuse = {})
      : cache_(cache), tokens_(tokens), reuse_(reuse) {}
  PromptSteps(const PromptSteps&) = delete;
  PromptSteps& operator=(const PromptSteps&) = delete;
  ~PromptSteps();

  bool done() const { return done_ == tokens_.size(); }

  // The tokens to append next, at most `most` (at least one); not once it is done. May be called
  // again with another number, where the step found no memory. ResourceExhausted without memory.
  absl::StatusOr<absl::Span<const int32_t>> Next(size_t most);
  // Whether the step that Next() gave ends the prompt.
  bool last() const { return done_ + step_ == tokens_.size(); }

  // The step is in the conversation.
  void Accept();

  // Drops the snapshot that has not been used for longest; false when there is none. For a step
  // that found no memory: what snapshots hold is there for those who need it now.
  bool MakeRoom() { return reuse_.prefixes != nullptr && reuse_.prefixes->DropOldest(); }

  size_t reused() const { return reused_; }  // tokens taken over, once Next() was called

 private:
  absl::Status Start();

  KVCache& cache_;
  const absl::Span<const int32_t> tokens_;
  const PromptReuse reuse_;
  bool started_ = false;
  size_t reused_ = 0;
  size_t done_ = 0;                  // tokens that are in the conversation
  size_t step_ = 0;                  // tokens of the step that runs
  std::unique_ptr<KVCache> before_;  // the conversation before it, where that is not a step back
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GENERATION_PROMPT_STEPS_H_
