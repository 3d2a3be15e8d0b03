#include "ops/cpu_target.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace inlay {
namespace {

TEST(CpuTarget, BestIsChosenUntilForced) {
  const auto targets = RunnableTargets();
  ASSERT_FALSE(targets.empty());
  EXPECT_EQ(ChosenTarget(), targets.front());
  for (const auto& target : targets) {
    EXPECT_TRUE(ForceTarget(target));
    EXPECT_EQ(ChosenTarget(), target);
    EXPECT_EQ(RunnableTargets(), targets) << "forcing must not hide the others";
  }
  EXPECT_TRUE(ForceTarget(""));
  EXPECT_EQ(ChosenTarget(), targets.front());
}

TEST(CpuTarget, RunnableTargetsAreAmongTheCompiled) {
  const auto compiled = CompiledTargets();
  for (const auto& target : RunnableTargets()) {
    EXPECT_NE(std::find(compiled.begin(), compiled.end(), target), compiled.end()) << target;
  }
}

TEST(CpuTarget, UnknownNameChangesNothing) {
  const auto targets = RunnableTargets();
  ASSERT_TRUE(ForceTarget(targets.back()));
  EXPECT_FALSE(ForceTarget("MMX"));
  EXPECT_EQ(ChosenTarget(), targets.back());
  EXPECT_TRUE(ForceTarget(""));
}

}  // namespace
}  // namespace inlay
