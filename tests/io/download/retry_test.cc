#include "io/download/retry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/steady_time.h"

namespace inlay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const absl::Status kGone = absl::UnavailableError("gone");

TEST(Retry, WaitsLongerEachTimeAndGivesUp) {
  std::vector<std::string> notes;
  const PullObserver observer = {.note = [&](const std::string& note) { notes.push_back(note); }};
  const RetryPolicy policy = {.attempts = 3, .first_wait = absl::Milliseconds(1)};
  Retry retry(policy, observer);
  EXPECT_TRUE(retry.Wait(kGone).ok());
  EXPECT_TRUE(retry.Wait(kGone).ok());
  EXPECT_EQ(retry.Wait(kGone), kGone);
  EXPECT_THAT(notes, ElementsAre("gone; trying again in 1ms", "gone; trying again in 2ms"));
  retry.Reset();
  EXPECT_TRUE(retry.Wait(kGone).ok());
}

TEST(Retry, StopsWaitingOnceItIsCancelled) {
  int asked = 0;
  Retry retry({.first_wait = absl::Hours(1), .longest_wait = absl::Hours(1)},
              {.cancelled = [&] { return ++asked == 2; }});
  EXPECT_EQ(retry.Wait(kGone).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(asked, 2);
}

TEST(Retry, ReturnsWhatDoesNotPass) {
  const RetryPolicy policy;
  Retry retry(policy, {});
  EXPECT_EQ(retry.Wait(absl::NotFoundError("no")).code(), absl::StatusCode::kNotFound);
}

TEST(Retry, WaitsAsLongAsItIsAskedToWithinReason) {
  const RetryPolicy policy = {.first_wait = absl::Milliseconds(1),
                              .longest_wait = absl::Milliseconds(50)};
  Retry retry(policy, {});
  const absl::Time start = SteadyNow();
  EXPECT_TRUE(retry.Wait(kGone, absl::Milliseconds(50)).ok());
  EXPECT_GE(SteadyNow() - start, absl::Milliseconds(50));
  EXPECT_THAT(std::string(retry.Wait(kGone, absl::Minutes(5)).message()),
              HasSubstr("left alone for 5m"));
}

}  // namespace
}  // namespace inlay
