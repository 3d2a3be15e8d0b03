#include "io/hub/hub_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace inlay {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(HubName, ReadsUserRepositoryAndType) {
  const auto name = HubName::Parse("ggml-org/gemma-3-1b-it-GGUF");
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_EQ(name->user, "ggml-org");
  EXPECT_EQ(name->repo, "gemma-3-1b-it-GGUF");
  EXPECT_EQ(name->type, "");
  EXPECT_EQ(name->ToString(), "ggml-org/gemma-3-1b-it-GGUF");
  EXPECT_EQ(HubName::Parse("u/r:q4_k_m")->type, "q4_k_m");
  EXPECT_EQ(HubName::Parse("u/r:UD-Q4_K_XL")->ToString(), "u/r:UD-Q4_K_XL");
  EXPECT_EQ(HubName::Parse("u/r:sub/model v2.gguf")->type, "sub/model v2.gguf");
  EXPECT_TRUE(HubName::Parse("_a.b-c_/0.1").ok());
}

TEST(HubName, ReadsAddresses) {
  for (const char* text :
       {"https://huggingface.co/a/b", "https://huggingface.co/a/b/", "huggingface.co/a/b",
        "hf.co/a/b", "https://hf.co/a/b?library=llama-cpp-python", "https://huggingface.co/a/b#use",
        "https://huggingface.co/a/b/tree/main", "https://huggingface.co/a/b/tree/main/"}) {
    const auto name = HubName::Parse(text);
    ASSERT_TRUE(name.ok()) << name.status();
    EXPECT_EQ(name->ToString(), "a/b") << text;
  }
  for (const char* text : {"https://huggingface.co/a/b/blob/main/sub/m.gguf",
                           "https://huggingface.co/a/b/resolve/main/sub/m.gguf?download=true"})
    EXPECT_EQ(HubName::Parse(text)->ToString(), "a/b:sub/m.gguf") << text;
  EXPECT_EQ(HubName::Parse("hf.co/a/b:Q4_K_M")->ToString(), "a/b:Q4_K_M");
  EXPECT_THAT(std::string(HubName::Parse("https://huggingface.co/a/b/tree/v2").status().message()),
              HasSubstr("is of the revision 'v2'"));
  EXPECT_FALSE(HubName::Parse("https://huggingface.co/a/b/blob/main/../../x.gguf").ok());
}

TEST(HubName, RefusesAnythingElse) {
  for (const char* text : {"",
                           "repo",
                           "/",
                           "/repo",
                           "user/",
                           "a/b/c",
                           "../repo",
                           "user/..",
                           "./x",
                           "user/.x",
                           "-a/b",
                           "a-/b",
                           "a/b-",
                           "a/b.",
                           "a--b/c",
                           "a/b--c",
                           "a/b..c",
                           "a b/c",
                           "a/b c",
                           "a/b\n",
                           "a\\b/c",
                           "https://a.example/a/b",
                           "a/b@main",
                           "\xff/a",
                           "a/b\x1b[31m",
                           "https://huggingface.co/a",
                           "http://huggingface.co/a/b",
                           "https://huggingface.co/a/b/tree/main/sub",
                           "https://huggingface.co/a/b/discussions"})
    EXPECT_THAT(std::string(HubName::Parse(text).status().message()),
                HasSubstr("is not the name of a model on a hub"))
        << text;
  const std::string long_name(97, 'a');
  EXPECT_FALSE(HubName::Parse(long_name + "/b").ok());
  EXPECT_FALSE(HubName::Parse(absl::string_view("a/b\0c", 5)).ok());
  for (const char* type : {"", "4", "../x", "Q4/0", "a b", ":"})
    EXPECT_THAT(std::string(HubName::Parse(std::string("a/b:") + type).status().message()),
                HasSubstr("is neither a quantization"))
        << type;
  EXPECT_THAT(std::string(HubName::Parse("a/b:../x.gguf").status().message()),
              HasSubstr("is refused"));
}

TEST(HubName, PathsStayInTheirFolder) {
  for (const char* path : {"a.gguf", "a/b/c.gguf", "..a", "a..", "a b", "ä.gguf", "..."})
    EXPECT_TRUE(CheckHubPath(path).ok()) << path;
  for (const std::string& path :
       {std::string(), std::string("/a"), std::string("a/"), std::string("a//b"), std::string(".."),
        std::string("."), std::string("a/../b"), std::string("a/./b"), std::string("a\\b"),
        std::string("a\nb"), std::string("a\0b", 3), std::string("\x7f"), std::string("\xff"),
        std::string(256, 'a'), std::string("1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17")})
    EXPECT_FALSE(CheckHubPath(path).ok()) << path;
  // What a message repeats cannot control a terminal.
  EXPECT_THAT(std::string(CheckHubPath("\x1b[31m").message()), Not(HasSubstr("\x1b")));
}

TEST(HubName, KnowsHashes) {
  EXPECT_TRUE(IsHex("0123456789abcdef", 16));
  EXPECT_FALSE(IsHex("0123456789abcdef", 15));
  EXPECT_FALSE(IsHex("0123456789ABCDEF", 16));
  EXPECT_FALSE(IsHex("../..", 5));
}

}  // namespace
}  // namespace inlay
