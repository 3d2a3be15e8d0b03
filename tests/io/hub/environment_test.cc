#include "io/hub/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "tests/io/file/folder_test.h"

namespace inlay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class EnvironmentTest : public FolderTest<> {
 protected:
  EnvironmentTest() { Set({}); }

  // These of the variables, and no other.
  void Set(const std::map<std::string, std::string>& variables) {
    for (const char* name : {"HOME", "XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE",
                             "HUGGINGFACE_HUB_CACHE", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN",
                             "HF_TOKEN_PATH", "HF_ENDPOINT", "HF_HUB_OFFLINE", "OLLAMA_MODELS"})
      unsetenv(name);
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  }
};

TEST_F(EnvironmentTest, ExpandsTheHomeFolder) {
  EXPECT_EQ(ExpandHome("~/x"), "~/x") << "there is none";
  Set({{"HOME", "/h"}});
  EXPECT_EQ(ExpandHome("~"), "/h");
  EXPECT_EQ(ExpandHome("~/x"), "/h/x");
  for (const char* other : {"", "x", "/~/x", "~other/x"}) EXPECT_EQ(ExpandHome(other), other);
}

TEST_F(EnvironmentTest, FindsTheCache) {
  EXPECT_THAT(std::string(HubCacheFolder().status().message()), HasSubstr("HF_HUB_CACHE"));
  std::map<std::string, std::string> variables = {{"HOME", "/h"}};
  const auto next = [&](const char* name, const char* value) {
    variables[name] = value;
    Set(variables);
    return HubCacheFolder().value();
  };
  EXPECT_EQ(next("HOME", "/h"), "/h/.cache/huggingface/hub");
  EXPECT_EQ(next("XDG_CACHE_HOME", "/x"), "/x/huggingface/hub");
  EXPECT_EQ(next("HF_HOME", "~/f"), "/h/f/hub");
  EXPECT_EQ(next("HUGGINGFACE_HUB_CACHE", "/c"), "/c");
  EXPECT_EQ(next("HF_HUB_CACHE", "/d"), "/d");
  EXPECT_EQ(next("HF_HUB_CACHE", ""), "/c");
}

TEST_F(EnvironmentTest, FindsTheToken) {
  const auto token = [&] { return HubAccessFromEnvironment().value().token; };
  Set({{"HOME", Path("")}});
  EXPECT_EQ(token(), "");
  std::filesystem::create_directories(Path(".cache/huggingface"));
  Make(".cache/huggingface/token", "hf_file\n");
  EXPECT_EQ(token(), "hf_file");
  const std::string other = Make("other", "hf_other");
  Set({{"HOME", Path("")}, {"HF_TOKEN_PATH", other}});
  EXPECT_EQ(token(), "hf_other");
  Set({{"HOME", Path("")}, {"HUGGING_FACE_HUB_TOKEN", "hf_old"}});
  EXPECT_EQ(token(), "hf_old");
  Set({{"HOME", Path("")}, {"HUGGING_FACE_HUB_TOKEN", "hf_old"}, {"HF_TOKEN", " hf_new "}});
  EXPECT_EQ(token(), "hf_new");
  for (const char* bad : {"a\r\nHost: evil", "a b", "\x01", "\xc3\xa4"}) {
    Set({{"HF_TOKEN", bad}});
    // The message does not repeat it.
    EXPECT_EQ(HubAccessFromEnvironment().status().message(),
              "the token of $HF_TOKEN is not one word of visible ASCII characters");
  }
}

TEST_F(EnvironmentTest, ReadsEndpointAndOffline) {
  EXPECT_EQ(HubAccessFromEnvironment()->endpoint, "https://huggingface.co");
  EXPECT_FALSE(HubAccessFromEnvironment()->offline);
  for (const char* yes : {"1", "ON", "yes", "True"}) {
    Set({{"HF_HUB_OFFLINE", yes}, {"HF_ENDPOINT", "http://mirror:8080/hub//"}});
    EXPECT_TRUE(HubAccessFromEnvironment()->offline) << yes;
    EXPECT_EQ(HubAccessFromEnvironment()->endpoint, "http://mirror:8080/hub");
  }
  Set({{"HF_HUB_OFFLINE", "0"}});
  EXPECT_FALSE(HubAccessFromEnvironment()->offline);
  for (const char* bad : {"huggingface.co", "ftp://x", "file:///x", "httpsx://"}) {
    Set({{"HF_ENDPOINT", bad}});
    EXPECT_THAT(std::string(HubAccessFromEnvironment().status().message()),
                HasSubstr("begins with neither https:// nor http://"));
  }
}

TEST_F(EnvironmentTest, FindsOtherProgramsFolders) {
  EXPECT_THAT(OllamaFolders(), ElementsAre("/usr/share/ollama/.ollama/models"));
  EXPECT_THAT(LmStudioFolders(), IsEmpty());
  Set({{"HOME", "/h"}});
  EXPECT_THAT(OllamaFolders(),
              ElementsAre("/h/.ollama/models", "/usr/share/ollama/.ollama/models"));
  EXPECT_THAT(LmStudioFolders(), ElementsAre("/h/.lmstudio/models", "/h/.cache/lm-studio/models"));
  Set({{"HOME", Path("")}, {"OLLAMA_MODELS", "/o"}});
  EXPECT_THAT(OllamaFolders(), ElementsAre("/o"));
  Make(".lmstudio-home-pointer", "/elsewhere/lm\n");
  EXPECT_EQ(LmStudioFolders().front(), "/elsewhere/lm/models");
  Make(".lmstudio-home-pointer", "relative");
  EXPECT_EQ(LmStudioFolders().size(), 2u);
}

}  // namespace
}  // namespace inlay
