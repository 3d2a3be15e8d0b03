#include "ops/cpu/machine_limits.h"

#include <algorithm>
#include <thread>

#include "tests/ops/op_test.h"
#include "tests/wait_until.h"

namespace inlay {
namespace {

using MachineLimitsTest = OnEveryTarget;
INLAY_ON_EVERY_TARGET(MachineLimitsTest);

// No bounds on speeds here: only that each figure is one, which for reading takes passes that left
// nothing out.
TEST_P(MachineLimitsTest, MeasuresSomething) {
  const DotPeaks peaks = MeasureDotPeaks(1, GetParam());
  EXPECT_EQ(ChosenTarget(), GetParam());
  EXPECT_GT(peaks.int8, 1e6);
  EXPECT_GT(peaks.bf16, 1e6);
  EXPECT_GT(peaks.f32, 1e6);
  for (size_t threads : {1, 2, 3}) {
    Team team(threads);
    EXPECT_GT(MeasureReadBandwidth(team, size_t{8} << 20), 1e6);
    EXPECT_GT(MeasureDotPeaks(threads, GetParam()).f32, 1e6);
  }
}

// Threads beyond those of the hardware add nothing: no core's peak is counted twice. A factor of
// two is left to whatever else runs here, and a measurement that is disturbed by more is repeated.
TEST(MachineLimits, ThreadsShareTheCores) {
  const size_t cores = std::max<size_t>(1, std::thread::hardware_concurrency());
  EXPECT_TRUE(WaitUntil([&] {
    return MeasureDotPeaks(8 * cores).f32 < 2 * static_cast<double>(cores) * MeasureDotPeaks(1).f32;
  }));
}

}  // namespace
}  // namespace inlay
