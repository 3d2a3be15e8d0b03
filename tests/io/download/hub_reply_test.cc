#include "io/download/hub_reply.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/time/time.h"

namespace inlay {
namespace {

TEST(HubReply, ReadsRetryAfter) {
  const absl::Time now =
      absl::FromCivil(absl::CivilSecond(2015, 10, 21, 7, 27, 0), absl::UTCTimeZone());
  const auto after = [&](const std::string& value) {
    HttpReplyHead head;
    head.headers["retry-after"] = value;
    return RetryAfter(head, now);
  };
  EXPECT_EQ(after("120"), absl::Seconds(120));
  EXPECT_EQ(after("Wed, 21 Oct 2015 07:28:00 GMT"), absl::Seconds(60));
  EXPECT_EQ(after("Wed, 21 Oct 2015 07:00:00 GMT"), absl::ZeroDuration());
  for (const char* value : {"", "-1", "soon", "99999999999999999999"})
    EXPECT_EQ(after(value), absl::ZeroDuration()) << value;
}

}  // namespace
}  // namespace inlay
