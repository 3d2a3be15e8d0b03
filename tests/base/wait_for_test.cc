#include "base/wait_for.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/steady_time.h"

namespace inlay {
namespace {

TEST(WaitForTest, ReturnsFalseWhenTheTimeIsOver) {
  std::mutex mutex;
  std::condition_variable changed;
  std::unique_lock lock(mutex);
  const absl::Time begin = SteadyNow();
  EXPECT_FALSE(WaitFor(changed, lock, absl::Milliseconds(20), [] { return false; }));
  EXPECT_GE(SteadyNow() - begin, absl::Milliseconds(20));
  EXPECT_FALSE(WaitFor(changed, lock, -absl::InfiniteDuration(), [] { return false; }));
}

TEST(WaitForTest, DoesNotWaitForWhatIsTrue) {
  std::mutex mutex;
  std::condition_variable changed;
  std::unique_lock lock(mutex);
  EXPECT_TRUE(WaitFor(changed, lock, absl::ZeroDuration(), [] { return true; }));
  EXPECT_TRUE(WaitFor(changed, lock, absl::InfiniteDuration(), [] { return true; }));
}

// As times of a clock, those would lie in the past.
TEST(WaitForTest, WaitsForAsLongAsItTakes) {
  for (const absl::Duration most : {absl::Hours(24 * 366 * 300), absl::InfiniteDuration()}) {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    std::thread other([&] {
      absl::SleepFor(absl::Milliseconds(20));
      const std::lock_guard lock(mutex);
      done = true;
      changed.notify_all();
    });
    {
      std::unique_lock lock(mutex);
      EXPECT_TRUE(WaitFor(changed, lock, most, [&] { return done; })) << most;
    }
    other.join();
  }
}

}  // namespace
}  // namespace inlay
