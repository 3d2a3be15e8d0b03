// How many tokens of prompts one step may have.
#ifndef INLAY_SERVE_SCHEDULER_STEP_BUDGET_H_
#define INLAY_SERVE_SCHEDULER_STEP_BUDGET_H_

#include <cstddef>

#include "absl/time/time.h"

namespace inlay::serve {

// Keeps steps to a target time while answers wait for their next token: the budget follows the
// measured times. It changes when tokens are computed, never which.
class StepBudget {
 public:
  static constexpr size_t kLeast = 16;

  // `most` >= 1: tokens of one batch.
  StepBudget(absl::Duration target, size_t most);

  // Tokens of prompts that the next step may have, if answers wait for it.
  size_t tokens() const { return tokens_; }

  // A step with this many tokens of prompts took that long.
  void Measured(size_t prompt_tokens, absl::Duration took);

 private:
  const absl::Duration target_;
  const size_t most_;
  size_t tokens_;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SCHEDULER_STEP_BUDGET_H_
