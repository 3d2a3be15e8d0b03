// The files of inlay chat where they are damaged, or something else: saved and kept chats, and the
// history of what was typed.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/temp_folder.h"
#include "tests/tools/program.h"

namespace inlay {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ChatFiles : public testing::Test {
 protected:
  ProgramResult Pipe(const std::string& input, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"chat", "-s", "1", "-n", "8"});
    return RunProgram(more, {.input = input, .env = env_});
  }

  // Types the lines into a chat once it has shown `opening` and its prompt, and ends it.
  ProgramResult Type(const std::string& opening, const std::string& lines) const {
    Terminal terminal({"chat", "-s", "1", "-n", "8"}, env_);
    terminal.WaitFor(opening);
    terminal.WaitFor("> ");
    terminal.Type(lines + "/exit\n");
    return terminal.Finish();
  }

  const TempFolder folder_;
  const std::map<std::string, std::string> env_ = {
      {"TERM", "xterm"}, {"HOME", folder_.path()}, {"LANG", "C.UTF-8"}};
  const fs::path chats_ = folder_.Path(".local/state/inlay/chats"),
                 history_ = folder_.Path(".local/state/inlay/history/chat");
};

TEST_F(ChatFiles, ASavedChatThatEndsEarly) {
  const std::string saved = folder_.Path("saved");
  ASSERT_EQ(Pipe("ROMEO:\n/save " + saved + "\n").status, 0);
  const size_t size = fs::file_size(saved);
  for (const size_t cut : {size - 1, size / 2, size_t{150}}) {
    fs::resize_file(saved, cut);
    ExpectError(Pipe("/load " + saved + "\n"), 1,
                AllOf(HasSubstr("saved: the saved c"), Not(HasSubstr("(-c)"))));
  }
}

TEST_F(ChatFiles, AKeptChatThatIsEmpty) {
  ASSERT_EQ(Type("/help lists", "ROMEO:\n").status, 0);
  const std::vector<fs::path> kept(fs::directory_iterator(chats_), {});
  ASSERT_EQ(kept.size(), 1u);
  fs::resize_file(kept.front(), 0);
  ExpectError(
      Pipe("", {"--continue"}), 1,
      AllOf(HasSubstr("the kept chat " + kept.front().stem().string() + ": it is not a saved chat"),
            HasSubstr("without --continue, /chats lists the others"), Not(HasSubstr("bard.gguf"))));
}

TEST_F(ChatFiles, AHistoryThatIsNoFileOrTooLarge) {
  fs::create_directories(history_.parent_path());
  const std::string note = "what is typed is not remembered, since ";
  ASSERT_EQ(mkfifo(history_.c_str(), 0600), 0);
  EXPECT_EQ(Type(note, "/forks\n").status, 0);
  EXPECT_TRUE(fs::is_fifo(history_));
  fs::remove(history_);
  WriteFile(history_, "");
  fs::resize_file(history_, size_t{30} << 20);
  EXPECT_EQ(Type(note, "/forks\n").status, 0);
  EXPECT_EQ(fs::file_size(history_), size_t{30} << 20);
}

// A loss of power while the file was written would take all that it had.
TEST_F(ChatFiles, ALongHistoryIsReplacedAtOnce) {
  fs::create_directories(history_.parent_path());
  std::string lines = "_HiStOrY_V2_\n";
  for (int i = 0; i < 3000; ++i) absl::StrAppend(&lines, "message", i, "\n");
  WriteFile(history_, lines);
  const std::string before = folder_.Path("before");
  fs::create_hard_link(history_, before);
  EXPECT_EQ(Type("/help lists", "/forks\n").status, 0);
  EXPECT_TRUE(ReadFile(before) == lines) << "the file itself is as it was";
  const std::vector<std::string> after = absl::StrSplit(ReadFile(history_), '\n');
  ASSERT_EQ(after.size(), 1 + 1000 + 2 + 1u);
  EXPECT_EQ(after[0], "_HiStOrY_V2_");
  EXPECT_EQ(after[1], "message2000");
  EXPECT_EQ(after[1000], "message2999");
  EXPECT_EQ(after[1001], "/forks");
}

}  // namespace
}  // namespace inlay
