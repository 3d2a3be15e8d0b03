#include "ops/cpu/machine_limits.h"

#include "tests/ops/op_test.h"

namespace inlay {
namespace {

using MachineLimitsTest = OnEveryTarget;
INLAY_ON_EVERY_TARGET(MachineLimitsTest);

// No bounds on speeds here: only that each figure is one, which for reading takes passes that left
// nothing out.
TEST_P(MachineLimitsTest, MeasuresSomething) {
  const DotPeaks peaks = MeasureDotPeaks(GetParam());
  EXPECT_EQ(ChosenTarget(), GetParam());
  EXPECT_GT(peaks.int8, 1e6);
  EXPECT_GT(peaks.bf16, 1e6);
  EXPECT_GT(peaks.f32, 1e6);
  for (size_t threads : {1, 2, 3}) {
    Team team(threads);
    EXPECT_GT(MeasureReadBandwidth(team, size_t{8} << 20), 1e6);
  }
}

}  // namespace
}  // namespace inlay
