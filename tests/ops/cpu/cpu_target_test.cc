#include "ops/cpu/cpu_target.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "ops/matmul/matmul_tiles.h"
#include "ops/softmax.h"
#include "tests/ops/op_test.h"

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

// A kernel that is not compiled for the forced target runs on the next one below it, not on the
// worst: its sums, whose order depends on the length of the vectors, have the same bits.
TEST(CpuTarget, KernelsWithoutTheForcedTargetTakeTheNext) {
  const auto targets = RunnableTargets();
  const auto runs = [&](const char* target) {
    return std::find(targets.begin(), targets.end(), target) != targets.end();
  };
  if (!runs("AVX3") || !runs("SSE2")) GTEST_SKIP() << "this CPU lacks AVX-512";
  const Array x = RandomArray(1, 1000, 7);
  const auto sum_on = [&](const std::string& target) {
    EXPECT_TRUE(ForceTarget(target));
    const double sum = LogSumExp(x.data(), x.size());
    ForceTarget("");
    return sum;
  };
  ASSERT_NE(sum_on("AVX3"), sum_on("SSE2")) << "the sum does not show the target";
  for (const char* target : {"AVX3_DL", "AVX3_ZEN4"}) {
    if (!runs(target)) continue;
    EXPECT_EQ(sum_on(target), sum_on("AVX3")) << target;
  }
}

// Products of bytes are exact and what follows them is the same: an extension changes the kernels,
// not the bits.
TEST(CpuTarget, ExtensionsHaveKernelsOfTheirOwn) {
  size_t compared = 0;
  for (const ExtensionTarget& target : kExtensionTargets) {
    if (!ForceTarget(target.with)) continue;
    EXPECT_EQ(ChosenExtension(), target.extension);
    const TileKernels with = ChosenTileKernels();
    ASSERT_TRUE(ForceTarget(target.without));
    EXPECT_EQ(ChosenExtension(), Extension::kNone);
    const TileKernels without = ChosenTileKernels();
    EXPECT_NE(with.bytes, without.bytes) << target.with;
    EXPECT_NE(with.nibbles, without.nibbles) << target.with;
    EXPECT_EQ(with.floats, without.floats) << target.with;
    EXPECT_EQ(with.bf16 == without.bf16,
              target.extension == Extension::kVnni || target.extension == Extension::kDotprod)
        << target.with;
    ++compared;
  }
  ForceTarget("");
  if (compared == 0) GTEST_SKIP() << "this CPU has no extension";
}

// The kernels of I8MM are those of NEON, whichever target has it.
TEST(CpuTarget, KernelsOfI8mmDoNotDependOnSve) {
  ForceTarget("");
  if (ChosenExtension() != Extension::kI8mm) GTEST_SKIP() << "this CPU lacks I8MM";
  const TileKernels best = ChosenTileKernels();
  for (const ExtensionTarget& target : kExtensionTargets) {
    if (target.extension != Extension::kI8mm || !ForceTarget(target.with)) continue;
    const TileKernels kernels = ChosenTileKernels();
    EXPECT_EQ(kernels.bytes, best.bytes) << target.with;
    EXPECT_EQ(kernels.nibbles, best.nibbles) << target.with;
    EXPECT_EQ(kernels.bf16, best.bf16) << target.with;
  }
  ForceTarget("");
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
