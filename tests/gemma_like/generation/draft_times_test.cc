// The costs of drafts as passes are timed.
#include "gemma_like/generation/draft_times.h"

#include <gtest/gtest.h>

namespace inlay {
namespace {

constexpr DraftCosts kAssumed = {.pass = 0.5, .row = 0.25};

TEST(DraftTimesTest, KnowsWhatWasTimedAndAssumesTheRest) {
  DraftTimes times;
  const auto expect = [&](double pass, double row) {
    EXPECT_DOUBLE_EQ(times.CostsOr(kAssumed).pass, pass);
    EXPECT_DOUBLE_EQ(times.CostsOr(kAssumed).row, row);
  };
  expect(0.5, 0.25);
  for (int i = 0; i < 4; ++i) times.DraftPass(0.01);
  expect(0.5, 0.25);
  for (int i = 0; i < 4; ++i) times.ModelPass(0.1, 1);
  expect(0.1, 0.25);
  for (int i = 0; i < 4; ++i) times.ModelPass(0.16, 4);
  expect(0.1, 0.2);
}

TEST(DraftTimesTest, FollowsChangesAndIsNotMisledByAPause) {
  DraftTimes times;
  for (int i = 0; i < 50; ++i) {
    times.ModelPass(0.1, 1);
    times.DraftPass(0.02);
  }
  times.DraftPass(100);
  EXPECT_LT(times.CostsOr(kAssumed).pass, 0.25);
  for (int i = 0; i < 100; ++i) times.DraftPass(0.05);
  EXPECT_NEAR(times.CostsOr(kAssumed).pass, 0.5, 0.01);
}

// Passes with drafts that seem faster than those without: rows cost little, but not nothing.
TEST(DraftTimesTest, NothingIsFree) {
  DraftTimes times;
  for (int i = 0; i < 9; ++i) {
    times.ModelPass(0.1, 1);
    times.ModelPass(0.05, 8);
    times.DraftPass(0);
  }
  EXPECT_EQ(times.CostsOr(kAssumed).row, 0.01);
  EXPECT_EQ(times.CostsOr(kAssumed).pass, 0.01);
}

}  // namespace
}  // namespace inlay
