// What a pull makes of a hub's refusals.
#include "io/download/hub_reply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
#include "tests/io/download/hub_server.h"
#include "tests/io/download/hub_test.h"

namespace inlay {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using HubReplyTest = HubTest;

TEST_F(HubReplyTest, SaysWhatARefusalMeans) {
  server_.AddFile(kFile, bytes_);
  using Code = absl::StatusCode;
  Refuse("/api/", 401, {{"X-Error-Message", "Invalid username or password.\x1b[31m"}});
  ExpectError(Code::kPermissionDenied,
              AllOf(HasSubstr("no user/repo for everybody"), HasSubstr("set HF_TOKEN"),
                    HasSubstr("HTTP 401"), HasSubstr("\\u001b")));
  Refuse("/resolve/", 403, {{"X-Error-Code", "GatedRepo"}});
  ExpectError(Code::kPermissionDenied,
              AllOf(HasSubstr("user/repo, model-Q4_K_M.gguf is gated"),
                    HasSubstr(server_.url() + "/user/repo"), HasSubstr("set HF_TOKEN")));
  options_.access.token = "hf_secret";
  ExpectError(Code::kPermissionDenied, HasSubstr("as the user whose token is set"));
  Refuse("/api/", 401);
  ExpectError(Code::kPermissionDenied, HasSubstr("does not let the token's user read user/repo"));
  Refuse("/api/", 404);
  ExpectError(Code::kNotFound, HasSubstr("has no user/repo (HTTP 404)"));
  Refuse("/resolve/", 404);
  ExpectError(Code::kNotFound, HasSubstr("has no user/repo, model-Q4_K_M.gguf"));
  Refuse("/api/", 418);
  ExpectError(Code::kFailedPrecondition, HasSubstr("HTTP 418"));
  Refuse("/api/", 204);
  ExpectError(Code::kInvalidArgument, HasSubstr("is not JSON"));
  Refuse(kHubCdn, 204);
  ExpectError(Code::kFailedPrecondition, HasSubstr("HTTP 204"));
  EXPECT_THAT(Files("blobs"), IsEmpty());
}

TEST_F(HubReplyTest, WaitsWhereItIsAskedTo) {
  server_.AddFile(kFile, bytes_);
  const auto left = std::make_shared<std::atomic<int>>(2);
  for (const std::string part : {"/api/", "/resolve/", kHubCdn}) {
    fs::remove_all(Path("hub"));
    *left = 2;
    server_.SetChange([=](const HubServerRequest& request, HubServerReply& reply) {
      if (!absl::StrContains(request.target, part) || (*left)-- <= 0) return;
      reply = {.status = 429, .headers = {{"Retry-After", "0"}, {"Content-Length", "0"}}};
    });
    ExpectPulled(bytes_);
    EXPECT_THAT(notes_, Contains(HasSubstr("too many requests")));
  }
  // Longer than anybody wants to wait.
  Refuse("/resolve/", 429, {{"Retry-After", "3600"}});
  fs::remove_all(Path("hub"));
  ExpectError(absl::StatusCode::kUnavailable,
              AllOf(HasSubstr("HTTP 429"), HasSubstr("left alone for 1h")));
  Refuse("/resolve/", 429, {{"Retry-After", "1"}});
  options_.retry.attempts = 2;
  options_.retry.longest_wait = absl::Seconds(2);
  const absl::Time start = SteadyNow();
  ExpectError(absl::StatusCode::kUnavailable, HasSubstr("HTTP 429"));
  EXPECT_GE(SteadyNow() - start, absl::Seconds(1));
}

TEST(RetryAfterTest, ReadsSecondsAndDates) {
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
