// Which servers are asked, which get the token, and the bound of headers.
#include "io/download/http_getter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "io/hub/environment.h"
#include "tests/io/download/hub_server.h"
#include "tests/io/download/hub_test.h"

namespace inlay {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

using HttpGetterTest = HubTest;

TEST_F(HttpGetterTest, GivesTheTokenToTheHubAlone) {
  server_.AddFile(kFile, bytes_);
  options_.access.token = "hf_secret";
  ExpectPulled(bytes_);
  for (const HubServerRequest& request : server_.requests()) {
    const bool is_hubs = !IsDownload(request);
    EXPECT_EQ(request.Header("authorization"), is_hubs ? "Bearer hf_secret" : "") << request.target;
  }
}

// The same address with another port is another server.
TEST_F(HttpGetterTest, GivesTheTokenToNoOtherPort) {
  HubServer other;
  const std::string hash = other.AddFile(kFile, bytes_);
  server_.AddFile(kFile, bytes_);
  options_.access.token = "hf_secret";
  server_.SetChange([&](const HubServerRequest& request, HubServerReply& reply) {
    if (absl::StrContains(request.target, "/resolve/"))
      reply.headers["Location"] = other.url() + kHubCdn + hash;
  });
  ExpectPulled(bytes_);
  ASSERT_EQ(other.requests().size(), 1u);
  EXPECT_EQ(other.requests()[0].Header("authorization"), "");
}

// A repository that was renamed: the hub redirects within itself.
TEST_F(HttpGetterTest, FollowsRelativeRedirections) {
  server_.AddFile(kFile, bytes_);
  options_.access.token = "hf_secret";
  server_.SetChange([](const HubServerRequest& request, HubServerReply& reply) {
    if (!absl::StrContains(request.target, "old")) return;
    std::string target = request.target;
    target.replace(target.find("old"), 3, "repo");
    reply = {.status = 307, .headers = {{"Location", target}, {"Content-Length", "0"}}};
  });
  const auto model = Pull("user/old");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(model->files[0], HasSubstr("models--user--old"));
  EXPECT_EQ(server_.requests()[1].Header("authorization"), "Bearer hf_secret");
}

TEST_F(HttpGetterTest, RefusesToBeRedirectedElsewhere) {
  server_.AddFile(kFile, bytes_);
  const std::pair<const char*, const char*> places[] = {
      {"file:///etc/passwd", "is not an address"},
      {"ftp://127.0.0.1/x", "is not https"},
      {"gopher://127.0.0.1/x", "is not https"},
      {"http://user:password@127.0.0.1/x", "is not an address"},
      {"http://", "is not an address"}};
  for (const auto& [place, why] : places) {
    server_.SetChange([place = place](const HubServerRequest& request, HubServerReply& reply) {
      if (absl::StrContains(request.target, "/resolve/")) reply.headers["Location"] = place;
    });
    ExpectError(absl::StatusCode::kInvalidArgument, HasSubstr(why));
  }
  // In a circle.
  server_.SetChange([](const HubServerRequest& request, HubServerReply& reply) {
    if (absl::StrContains(request.target, "/resolve/")) reply.headers["Location"] = request.target;
  });
  ExpectError(absl::StatusCode::kFailedPrecondition, HasSubstr("redirects more than 10 times"));
}

TEST_F(HttpGetterTest, SpeaksNoHttpWhereTheEndpointIsHttps) {
  HubAccess access;
  access.endpoint = "https://hub.invalid";
  const auto getter = HttpGetter::Create(access);
  ASSERT_TRUE(getter.ok()) << getter.status();
  const auto reply = (*getter)->Get({.url = "http://127.0.0.1:1/x"});
  EXPECT_EQ(reply.status().code(), absl::StatusCode::kInvalidArgument) << reply.status();
  EXPECT_THAT(std::string(reply.status().message()), HasSubstr("it is not https"));
}

// Nothing may fly through libcurl, which is C.
TEST_F(HttpGetterTest, AnExceptionOfWhatTakesAReplyIsAnError) {
  HubAccess access;
  access.endpoint = server_.url();
  const auto getter = HttpGetter::Create(access);
  ASSERT_TRUE(getter.ok()) << getter.status();
  const std::string url = absl::StrCat(server_.url(), kHubCdn, server_.AddFile(kFile, bytes_));
  const auto throws = [](const auto&) -> absl::Status { throw std::runtime_error("no"); };
  EXPECT_EQ((*getter)->Get({.url = url, .on_head = throws}).status().code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ((*getter)->Get({.url = url, .on_body = throws}).status().code(),
            absl::StatusCode::kInternal);
}

TEST_F(HttpGetterTest, BoundsHeaders) {
  server_.SetChange([](const HubServerRequest&, HubServerReply& reply) {
    for (int i = 0; i < 40; ++i) reply.headers[absl::StrCat("X-", i)] = std::string(8000, 'x');
  });
  ExpectError(AnyOf(absl::StatusCode::kInvalidArgument, absl::StatusCode::kUnavailable),
              HasSubstr("headers"));
}

}  // namespace
}  // namespace inlay
