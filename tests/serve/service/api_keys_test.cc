#include "serve/service/api_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace inlay::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ApiKeysTest, WithoutKeysEverybodyIsTheOneClient) {
  const ApiKeys keys;
  EXPECT_FALSE(keys.required());
  ASSERT_TRUE(keys.Find("").has_value());
  EXPECT_EQ(keys.Find("anything")->owner, 0);
}

TEST(ApiKeysTest, FindsTheClientOfAKey) {
  ApiKeys keys;
  ASSERT_TRUE(keys.Replace("# ours\nsecret-one alice 5\n\nsecret-two\tbob  # temporary\r\n"
                           "secret-333\nsecret-4444 alice\n")
                  .ok());
  EXPECT_TRUE(keys.required());
  const auto alice = keys.Find("secret-one");
  ASSERT_TRUE(alice.has_value());
  EXPECT_EQ(alice->name, "alice");
  EXPECT_EQ(alice->priority, 5);
  EXPECT_NE(alice->owner, 0);
  EXPECT_EQ(keys.Find("secret-4444")->owner, alice->owner) << "one client with two keys";
  EXPECT_NE(keys.Find("secret-two")->owner, alice->owner);
  EXPECT_NE(keys.Find("secret-333")->owner, keys.Find("secret-two")->owner);
  for (const char* wrong : {"", "secret-on", "secret-onE", "secret-one1", "alice", "secret-ones",
                            "secret-onesecret-one"}) {
    EXPECT_FALSE(keys.Find(wrong).has_value()) << wrong;
  }
}

// A "#" within a key is part of it.
TEST(ApiKeysTest, CommentsFollowWhiteSpace) {
  ApiKeys keys;
  ASSERT_TRUE(keys.Replace("  # ours\nsecret#one al#ice #bob\nsecret-two\t#5\n").ok());
  EXPECT_FALSE(keys.Find("secret").has_value());
  ASSERT_TRUE(keys.Find("secret#one").has_value());
  EXPECT_EQ(keys.Find("secret#one")->name, "al#ice");
  EXPECT_TRUE(keys.Find("secret-two").has_value());
}

TEST(ApiKeysTest, OwnersStayWhenKeysAreReadAgain) {
  ApiKeys keys;
  ASSERT_TRUE(keys.Replace("secret-one alice\nsecret-two\n").ok());
  const int32_t alice = keys.Find("secret-one")->owner, other = keys.Find("secret-two")->owner;
  ASSERT_TRUE(keys.Replace("secret-three carol\nsecret-two\nsecret-four alice\n").ok());
  EXPECT_FALSE(keys.Find("secret-one").has_value());
  EXPECT_EQ(keys.Find("secret-four")->owner, alice);
  EXPECT_EQ(keys.Find("secret-two")->owner, other);
  EXPECT_NE(keys.Find("secret-three")->owner, alice);
}

TEST(ApiKeysTest, RefusesBadListsAndKeepsTheOldOne) {
  ApiKeys keys;
  ASSERT_TRUE(keys.Replace("secret-one\n").ok());
  const auto refused = [&](const char* text) {
    const absl::Status status = keys.Replace(text);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), Not(HasSubstr("secret"))) << "no key is told";
    EXPECT_TRUE(keys.Find("secret-one").has_value());
    return std::string(status.message());
  };
  EXPECT_THAT(refused("\nshort\n"), HasSubstr("line 2 has a key of 5 characters"));
  EXPECT_THAT(refused("secret-two\nsecret-two b\n"), HasSubstr("line 2 repeats a key"));
  EXPECT_THAT(refused("secret-two bob high\n"), HasSubstr("line 1 has a priority"));
  EXPECT_THAT(refused("secret-two bob 101\n"), HasSubstr("from -100 to 100"));
  EXPECT_THAT(refused("secret-two bob 1 2\n"), HasSubstr("more than KEY NAME PRIORITY"));
  EXPECT_THAT(refused("# none\n"), HasSubstr("no key"));
}

}  // namespace
}  // namespace inlay::serve
