#include "base/steady_time.h"

#include <gtest/gtest.h>
#include <time.h>

#include "absl/time/time.h"

namespace inlay {
namespace {

TEST(SteadyTimeTest, IsTheTimeOfTheMonotonicClock) {
  timespec before, after;
  ASSERT_EQ(clock_gettime(CLOCK_MONOTONIC, &before), 0);
  const absl::Time now = SteadyNow();
  ASSERT_EQ(clock_gettime(CLOCK_MONOTONIC, &after), 0);
  EXPECT_GE(now, absl::TimeFromTimespec(before));
  EXPECT_LE(now, absl::TimeFromTimespec(after));
}

TEST(SteadyTimeTest, NoDeadlineIsEndless) {
  EXPECT_EQ(SteadyNow() + absl::InfiniteDuration(), absl::InfiniteFuture());
}

}  // namespace
}  // namespace inlay
