#include "serve/scheduler/step_budget.h"

#include <gtest/gtest.h>

namespace inlay::serve {
namespace {

// The budget after many steps of a machine that computes so many tokens a second.
size_t After(StepBudget& budget, double rate, int steps = 50) {
  for (int i = 0; i < steps; ++i) {
    const size_t tokens = budget.tokens();
    budget.Measured(tokens, absl::Seconds(static_cast<double>(tokens) / rate));
  }
  return budget.tokens();
}

TEST(StepBudgetTest, FollowsTheMachine) {
  StepBudget budget(absl::Milliseconds(100), 512);
  EXPECT_EQ(After(budget, 1e6), 512u) << "never above a batch";
  EXPECT_NEAR(static_cast<double>(After(budget, 2000)), 200, 60);
  EXPECT_EQ(After(budget, 10), StepBudget::kLeast) << "a prompt always goes on";
  EXPECT_NEAR(static_cast<double>(After(budget, 2000)), 200, 60);
}

TEST(StepBudgetTest, StepsWithoutPromptsSayNothing) {
  StepBudget budget(absl::Milliseconds(100), 512);
  const size_t before = budget.tokens();
  budget.Measured(0, absl::Seconds(3));
  EXPECT_EQ(budget.tokens(), before);
}

TEST(StepBudgetTest, OnlyAFullStepRaisesIt) {
  StepBudget budget(absl::Milliseconds(100), 512);
  const size_t before = budget.tokens();
  budget.Measured(before - 1, absl::Microseconds(1));
  EXPECT_EQ(budget.tokens(), before);
}

TEST(StepBudgetTest, AnOutlierHalvesItAtMost) {
  StepBudget budget(absl::Milliseconds(100), 512);
  After(budget, 1e6);
  budget.Measured(512, absl::Seconds(100));
  EXPECT_EQ(budget.tokens(), 256u);
}

TEST(StepBudgetTest, SmallBatches) {
  StepBudget budget(absl::Milliseconds(100), 4);
  EXPECT_EQ(budget.tokens(), 4u);
  EXPECT_EQ(After(budget, 1), 4u);
}

}  // namespace
}  // namespace inlay::serve
