// What Tab completes in inlay chat: commands, paths and the names of saved chats.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tests/temp_folder.h"
#include "tests/tools/program.h"
#include "tools/chat_loop.h"
#include "tools/completion.h"
#include "tools/kept_chats.h"

namespace inlay {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(Completion, OfCommandsAndPaths) {
  EXPECT_THAT(CompleteChatLine("/re", true).words, ElementsAre("/regen", "/rewind "));
  EXPECT_THAT(CompleteChatLine("/ch", false).words, IsEmpty());
  EXPECT_THAT(CompleteChatLine("/sa", true).words, ElementsAre("/save ", "/save! "));
  EXPECT_THAT(CompleteChatLine("/s", false).words,
              ElementsAre("/seed ", "/show ", "/stats", "/system "));
  EXPECT_THAT(CompleteChatLine("/save x", false).words, IsEmpty());
  EXPECT_THAT(CompleteChatLine("say /re", true).words, IsEmpty());
  EXPECT_THAT(CompleteChatLine("//re", true).words, IsEmpty());
  EXPECT_THAT(CompleteChatLine("/fork x", true).words, IsEmpty());
  const TempFolder folder;
  fs::create_directory(folder.Path("sub"));
  for (const char* name : {"some", "so\nme", ".hidden", "other"}) WriteFile(folder.Path(name), "");
  const std::string path = folder.path() + "/";
  EXPECT_THAT(CompletePath(path), ElementsAre(path + "other ", path + "some ", path + "sub/"));
  EXPECT_THAT(CompletePath(path + "s"), ElementsAre(path + "some ", path + "sub/"));
  EXPECT_THAT(CompletePath(path + ".h"), ElementsAre(path + ".hidden "));
  EXPECT_THAT(CompletePath(path + "none/x"), IsEmpty());
  const Completions found = CompleteChatLine("/save  " + path + "ot", true);
  EXPECT_EQ(found.begin, 7u);
  EXPECT_THAT(found.words, ElementsAre(path + "other "));
  const auto name = [](absl::string_view begun) {
    return std::vector<std::string>{absl::StrCat(begun, "ay ")};
  };
  EXPECT_THAT(CompleteChatLine("/load pl", true, name).words, ElementsAre("play "));
  EXPECT_THAT(CompleteChatLine("/load pl", false, name).words, IsEmpty());
  EXPECT_EQ(CommonBeginning({"/fork ", "/forks"}), "/fork");
  EXPECT_EQ(CommonBeginning({"a\u00e9", "a\u00e8"}), "a") << "no half of a character";
  EXPECT_EQ(CommonBeginning({}), "");
}

TEST(Completion, OfNamesInAStore) {
  const TempFolder folder;
  fs::create_directory(folder.Path("store"));
  const std::map<std::string, std::string> env = {
      {"TERM", "xterm"}, {"HOME", folder.path()}, {"LANG", "C.UTF-8"}};
  const std::vector<std::string> chat = {
      "chat", "-s", "1", "-n", "8", "--store", folder.Path("store"), "--autosave"};
  const ProgramResult saved = RunProgram(chat, {.input = "ROMEO:\n/save play\n", .env = env});
  ASSERT_EQ(saved.status, 0) << saved.err;
  std::vector<std::string> kept;
  for (const auto& entry : fs::directory_iterator(folder.Path("store"))) {
    const std::string name = entry.path().filename();
    if (KeptChats::IsKept(name)) kept.push_back(name);
  }
  EXPECT_EQ(kept.size(), 1u);
  EXPECT_FALSE(KeptChats::IsKept("chat-about-0123456789abcdef-"));
  // What was kept without being named has no name to be typed: one is left.
  Terminal terminal(chat, env);
  terminal.WaitFor("> ");
  terminal.Type("/load \t\n");
  terminal.WaitFor("after turn 1");
  terminal.WaitFor("> ROMEO:");
  terminal.WaitFor("> ");
  terminal.Type("/exit\n");
  EXPECT_EQ(terminal.Finish().status, 0);
}

}  // namespace
}  // namespace inlay
