#include "serve/scheduler/step_budget.h"

#include <algorithm>

namespace inlay::serve {
namespace {

size_t Scaled(size_t tokens, double by) {
  return static_cast<size_t>(static_cast<double>(tokens) * by);
}

}  // namespace

StepBudget::StepBudget(absl::Duration target, size_t most)
    : target_(target), most_(most), tokens_(std::min(most, size_t{64})) {}

void StepBudget::Measured(size_t prompt_tokens, absl::Duration took) {
  if (prompt_tokens == 0) return;  // says nothing about prompts
  const double ratio = absl::FDivDuration(target_, std::max(took, absl::Microseconds(1)));
  if (ratio < 1) {
    // At once, so that one slow step is not followed by another; but a single outlier does not
    // take away more than half.
    tokens_ = Scaled(std::min(tokens_, prompt_tokens), std::max(ratio, 0.5));
  } else if (prompt_tokens >= tokens_) {
    // Only a step that used its budget shows that there is room for more.
    tokens_ = std::max(tokens_ + 1, Scaled(tokens_, std::min(ratio, 1.25)));
  }
  tokens_ = std::clamp(tokens_, std::min(kLeast, most_), most_);
}

}  // namespace inlay::serve
