#include "serve/http/request_checks.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace inlay::serve {
namespace {

using namespace std::string_literals;

TEST(DecodePathTest, DecodesAndJoinsSlashes) {
  EXPECT_EQ(DecodePath("/"), "/");
  EXPECT_EQ(DecodePath("/v1/models/"), "/v1/models/");
  EXPECT_EQ(DecodePath("//v1///models"), "/v1/models");
  EXPECT_EQ(DecodePath("/%2f%2F/a"), "/a");
  EXPECT_EQ(DecodePath("/v1/models/google%2Fgemma%203"), "/v1/models/google/gemma 3");
  EXPECT_EQ(DecodePath("/%e4%b8%ad+%25"), "/中+%");
  EXPECT_EQ(DecodePath("/..a/.b/c./..."), "/..a/.b/c./...");
}

TEST(DecodePathTest, RefusesWhatIsNoPath) {
  for (const std::string& target :
       {""s,      "*"s,       "a"s,        "http://a/"s, "/."s,          "/.."s,
        "/./a"s,  "/a/../b"s, "/%2e%2e/"s, "/.%2E"s,     "/a%2F..%2Fb"s, "/%"s,
        "/%4"s,   "/%g0"s,    "/%0g"s,     "/% 1"s,      "/a#b"s,        "/%00"s,
        "/a\0b"s, "/%0d%0a"s, "/%7f"s,     "/%ff"s,      "/%c0%af"s,     "/\xed\xa0\x80"s}) {
    EXPECT_EQ(DecodePath(target), std::nullopt) << target;
  }
}

TEST(OriginFormTest, LeavesOutTheHostThatTheHeaderNames) {
  EXPECT_EQ(OriginForm("http://localhost:8080/v1/models?a=http://b/", "localhost:8080"),
            "/v1/models?a=http://b/");
  EXPECT_EQ(OriginForm("HTTP://LOCALHOST", "localhost"), "/");
  for (const char* target : {"/a", "*", "", "http://", "http://evil.example/a", "http:///a",
                             "http://localhost:8080/a", "https://localhost/a"}) {
    EXPECT_EQ(OriginForm(target, "localhost"), target);
    EXPECT_EQ(OriginForm(target, ""), target);
  }
}

TEST(IsAllowedHostTest, KnowsLocalhostAndAddresses) {
  for (const char* host : {"localhost", "LOCALHOST:8080", "a.localhost", "localhost.", "127.0.0.1",
                           "127.255.0.9:1", "[::1]", "[::1]:80", "localhost:", "192.168.1.5:8080",
                           "10.0.0.1", "[fd00::1]", "[::2]", "[FE80::1]:80", "[::ffff:10.0.0.1]"}) {
    EXPECT_TRUE(IsAllowedHost(host, {})) << host;
  }
  for (const char* host : {"",
                           ":80",
                           "[]",
                           "[::1",
                           "[::1]x",
                           "::1",
                           "[::2::3]",
                           "127.0.0.256",
                           "127.0.0",
                           "127.0.0.1.1",
                           "127.0.0.",
                           "127.a.0.1",
                           "127..0.1",
                           "10.0.0.1.evil.example",
                           "0x7f.0.0.1",
                           "010.0.0.1x",
                           "2130706433",
                           "xlocalhost",
                           "localhost.com",
                           "localhost:80x",
                           "localhost:80:80",
                           "a@localhost",
                           "localhost/",
                           "*"}) {
    EXPECT_FALSE(IsAllowedHost(host, {})) << host;
  }
}

TEST(IsAllowedHostTest, KnowsWhatTheOptionsAllow) {
  HttpOptions options;
  options.host = "Inlay.lan";
  options.allowed_hosts = {"example.org"};
  for (const char* host : {"inlay.lan:80", "EXAMPLE.org"}) {
    EXPECT_TRUE(IsAllowedHost(host, options)) << host;
  }
  for (const char* host : {"lan", "sub.example.org"}) {
    EXPECT_FALSE(IsAllowedHost(host, options)) << host;
  }
  options.allowed_hosts = {"*"};
  EXPECT_TRUE(IsAllowedHost("any.example", options));
  EXPECT_FALSE(IsAllowedHost("", options));
}

TEST(IsAllowedOriginTest, KnowsTheServersOwn) {
  const auto own = [](const char* origin, const char* host) {
    return IsAllowedOrigin(origin, host, {});
  };
  EXPECT_TRUE(own("http://localhost:8080", "localhost:8080"));
  EXPECT_TRUE(own("HTTP://LocalHost:8080", "localhost:8080"));
  EXPECT_TRUE(own("http://localhost", "localhost:80"));
  EXPECT_TRUE(own("http://localhost:80", "localhost"));
  EXPECT_TRUE(own("https://example.org", "example.org"));
  EXPECT_TRUE(own("https://example.org", "example.org:443"));
  EXPECT_FALSE(own("http://localhost:8081", "localhost:8080"));
  EXPECT_FALSE(own("http://localhost", "localhost:8080"));
  EXPECT_FALSE(own("https://localhost:8080", "localhost"));
  EXPECT_FALSE(own("http://localhost:443", "localhost"));
  EXPECT_FALSE(own("http://127.0.0.1:8080", "localhost:8080"));
  EXPECT_FALSE(own("http://localhost.evil", "localhost"));
  EXPECT_FALSE(own("null", "null"));
  EXPECT_FALSE(own("", ""));
  EXPECT_FALSE(own("http://", ""));
  EXPECT_FALSE(own("file://", "localhost"));
}

TEST(IsAllowedOriginTest, KnowsWhatTheOptionsAllow) {
  HttpOptions options;
  options.allowed_origins = {"https://example.org", "app://here"};
  EXPECT_TRUE(IsAllowedOrigin("https://Example.org", "localhost", options));
  EXPECT_TRUE(IsAllowedOrigin("app://here", "localhost", options));
  EXPECT_FALSE(IsAllowedOrigin("https://example.org:444", "localhost", options));
  EXPECT_FALSE(IsAllowedOrigin("http://example.org", "localhost", options));
  options.allowed_origins = {"*"};
  EXPECT_TRUE(IsAllowedOrigin("null", "localhost", options));
}

TEST(RequestChecksTest, KnowsJson) {
  EXPECT_TRUE(IsJson("application/json"));
  EXPECT_TRUE(IsJson(" Application/Json;charset=utf-8"));
  EXPECT_FALSE(IsJson(""));
  EXPECT_FALSE(IsJson("text/plain; application/json"));
  EXPECT_FALSE(IsJson("application/json, text/plain"));
  EXPECT_FALSE(IsJson("application/jsonl"));
}

TEST(RequestChecksTest, KnowsHeaders) {
  EXPECT_TRUE(IsHeader("X-A", "any text\t\x80"));
  EXPECT_TRUE(IsHeader("a", ""));
  EXPECT_FALSE(IsHeader("", "a"));
  EXPECT_FALSE(IsHeader("a:", "a"));
  EXPECT_FALSE(IsHeader("a", "a\r\nb"));
  EXPECT_FALSE(IsHeader("a", "a\0"s));
  EXPECT_TRUE(IsHeaderList("content-type, x-api-key"));
  EXPECT_FALSE(IsHeaderList(""));
  EXPECT_FALSE(IsHeaderList("a,,b"));
  EXPECT_FALSE(IsHeaderList("a b"));
}

// The first rule that is broken counts, and none after it is looked at.
TEST(CheckRequestTest, ChecksTheHostFirst) {
  const HttpHeaders headers = {{"Host", "evil.example"}, {"Origin", "http://evil.example"}};
  RequestHead head;
  head.method = "BREW";
  head.target = "x";
  head.has_body = true;
  head.headers = &headers;
  const auto refusal = CheckRequest(head, {});
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->status, 403);
  EXPECT_NE(refusal->message.find("'evil.example'"), std::string::npos);
  EXPECT_NE(refusal->message.find("--allow-host"), std::string::npos);
}

TEST(CheckRequestTest, OnlyHttp10NeedsNoHost) {
  const HttpHeaders none, two = {{"Host", "localhost"}, {"Host", "localhost"}},
                          page = {{"Origin", "http://localhost"}};
  RequestHead head;
  head.method = "GET";
  head.target = "/health";
  head.headers = &none;
  EXPECT_EQ(CheckRequest(head, {})->status, 400);
  head.http_1_1 = false;
  EXPECT_FALSE(CheckRequest(head, {}).has_value());
  head.headers = &two;
  EXPECT_EQ(CheckRequest(head, {})->status, 400);
  // A page's own server is the one of Host.
  head.headers = &page;
  EXPECT_EQ(CheckRequest(head, {})->status, 403);
}

}  // namespace
}  // namespace inlay::serve
