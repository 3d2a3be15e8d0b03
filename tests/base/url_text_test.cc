// Hosts, ports and escapes as URLs and the header Host have them.
#include "base/url_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"

namespace inlay {
namespace {

using ::testing::HasSubstr;

std::string Split(absl::string_view text) {
  const auto parts = SplitHostAndPort(text);
  if (!parts.ok()) return std::string(parts.status().message());
  return absl::StrCat(parts->host, parts->port.has_value() ? " " : "", parts->port.value_or(""));
}

TEST(UrlTextTest, SplitsHostsAndPorts) {
  EXPECT_EQ(Split("host"), "host");
  EXPECT_EQ(Split("host:80"), "host 80");
  EXPECT_EQ(Split("127.0.0.1:x"), "127.0.0.1 x");
  EXPECT_EQ(Split("host:"), "host ");
  EXPECT_EQ(Split(""), "");
  EXPECT_EQ(Split(":80"), " 80");
  EXPECT_EQ(Split("[::1]"), "::1");
  EXPECT_EQ(Split("[::1]:80"), "::1 80");
  EXPECT_EQ(Split("[]"), "");
}

TEST(UrlTextTest, RefusesWhatIsNoHostAndPort) {
  EXPECT_EQ(Split("[::1"), "the [ has no ]");
  EXPECT_EQ(Split("[::1]x"), "only :PORT can follow the ]");
  for (const char* address : {"::1", "fe80::1:6379", "a:1:2", "[::1]:80:80"})
    EXPECT_THAT(Split(address), HasSubstr("an address of IPv6 is written [::1]")) << address;
}

TEST(UrlTextTest, PortsAreNumbers) {
  EXPECT_EQ(ParsePort("1"), 1);
  EXPECT_EQ(ParsePort("65535"), 65535);
  EXPECT_EQ(ParsePort("0080"), 80);
  for (const char* text : {"", "0", "65536", "-1", "+1", " 1", "1 ", "0x1", "4294967297"})
    EXPECT_EQ(ParsePort(text), std::nullopt) << text;
}

TEST(UrlTextTest, DecodesPercents) {
  EXPECT_EQ(DecodePercents(""), "");
  EXPECT_EQ(DecodePercents("a+b"), "a+b");
  EXPECT_EQ(DecodePercents("%41%2f%2F%25%zz"), std::nullopt);
  EXPECT_EQ(DecodePercents("%41%2f%2F%2541"), "A//%41");
  EXPECT_EQ(DecodePercents("%00%e4"), std::string("\0\xe4", 2));
  for (const char* text : {"%", "a%", "%4", "%4g", "%g4", "%-1"})
    EXPECT_EQ(DecodePercents(text), std::nullopt) << text;
}

}  // namespace
}  // namespace inlay
