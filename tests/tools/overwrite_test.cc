// Files that exist: which of them the commands and the chat write over, and after which word.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "io/file/file_kind.h"
#include "tests/tools/program.h"

namespace inlay {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class Overwrite : public testing::Test {
 protected:
  Overwrite() : folder_(ScratchPath("folder")), model_(Path("model.gguf")) {
    fs::remove_all(folder_);
    fs::create_directory(folder_);
    fs::copy_file("models/bard.gguf", model_);
  }
  ~Overwrite() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  // The commands that write a file, to this one.
  std::vector<std::vector<std::string>> Commands(const std::string& output) const {
    return {{"quantize", model_, output, "Q8_0"},
            {"pack", model_, output},
            {"bundle", model_, "-o", output},
            {"synth", "bard", "-o", output}};
  }

  ProgramResult Chat(const std::string& input) {
    return RunProgram({"chat", "-m", model_, "-n", "2"}, {.input = "ROMEO:\n" + input + "\n"});
  }
  ProgramResult Generate(const std::string& session) {
    return RunProgram({"generate", "-m", model_, "-p", "A", "-n", "2", "--session", session});
  }

  // Refused with the path, and everything in the folder is as it was.
  void ExpectUntouched(const std::vector<std::string>& arguments, const std::string& path,
                       const std::string& word) {
    SCOPED_TRACE(arguments[0]);
    const std::string before = ReadFile(path);
    const auto files = [&] {
      return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
    };
    const auto count = files();
    ExpectError(RunProgram(arguments), 1, AllOf(HasSubstr(path), HasSubstr(word)));
    EXPECT_TRUE(ReadFile(path) == before);
    EXPECT_EQ(files(), count);
  }

  std::string folder_;
  std::string model_;
};

TEST_F(Overwrite, NeverTheModelInUse) {
  ASSERT_EQ(link(model_.c_str(), Path("hard").c_str()), 0);
  ASSERT_EQ(symlink("model.gguf", Path("soft").c_str()), 0);
  const std::string before = ReadFile(model_);
  for (const std::string& name : {model_, Path("hard"), Path("soft")}) {
    for (std::vector<std::string> command : Commands(name)) {
      if (command[0] == "synth") continue;  // which reads no model
      ExpectUntouched(command, name, "in use");
      command.push_back("--force");
      ExpectUntouched(command, name, "in use");
    }
    for (const char* save : {"/save ", "/save! "}) {
      const ProgramResult chat = Chat(save + name);
      EXPECT_EQ(chat.status, 1);
      EXPECT_THAT(chat.err, AllOf(HasSubstr(name), HasSubstr("in use")));
    }
    EXPECT_EQ(Generate(name).status, 1);
  }
  EXPECT_TRUE(ReadFile(model_) == before);
  EXPECT_TRUE(fs::is_symlink(Path("soft")));
  EXPECT_EQ(fs::hard_link_count(model_), 2u);
}

// A program whose model is copied is its own source.
TEST_F(Overwrite, NeverTheProgramThatIsCopied) {
  const std::string program = Path("program");
  ASSERT_EQ(RunProgram({"bundle", model_, "-o", program}).status, 0);
  ExpectUntouched({"bundle", model_, "-o", program, "--binary", program, "--force"}, program,
                  "in use");
  ExpectUntouched({"bundle", program, "-o", program, "--force"}, program, "in use");
}

TEST_F(Overwrite, NeverAFileOfAnotherKind) {
  const std::string text = Path("notes.txt"), session = Path("session"), chat = Path("chat");
  WriteFile(text, "To be");
  ASSERT_EQ(Generate(session).status, 0);
  ASSERT_EQ(Chat("/save " + chat).status, 0);
  for (const std::string& path : {text, session, chat}) {
    for (std::vector<std::string> command : Commands(path)) {
      command.push_back("--force");
      ExpectUntouched(command, path, "never written over");
    }
  }
  ExpectUntouched({"bundle", "models/bard.gguf", "-o", model_, "--force"}, model_,
                  "is a model file, not a program");
  const std::string before = ReadFile(session), other = Path("other.gguf");
  fs::copy_file(model_, other);
  for (const std::string& path : {text, session, other}) {
    const ProgramResult saved = Chat("/save! " + path);
    EXPECT_EQ(saved.status, 1);
    EXPECT_THAT(saved.err, AllOf(HasSubstr(path), HasSubstr("not a saved chat")));
  }
  EXPECT_EQ(ReadFile(text), "To be");
  EXPECT_EQ(ReadFile(session), before);
  EXPECT_TRUE(ReadFile(other) == ReadFile(model_));
  EXPECT_EQ(Generate(chat).status, 1);
  EXPECT_EQ(Generate(text).status, 1);
  EXPECT_EQ(ReadFile(text), "To be");
}

TEST_F(Overwrite, ExistingFilesOnlyByForce) {
  const std::string output = Path("output");
  for (std::vector<std::string> command : Commands(output)) {
    ASSERT_EQ(RunProgram(command).status, 0) << command[0];
    ExpectUntouched(command, output, "--force replaces it");
    // Something else of the same kind, to see it replaced.
    if (command[0] == "bundle") {
      WriteFile(output,
                "\x7f"
                "ELF");
    } else {
      WriteFile(output, std::string(kModelMagic));
    }
    command.push_back("--force");
    const ProgramResult forced = RunProgram(command);
    EXPECT_EQ(forced.status, 0) << forced.err;
    EXPECT_GT(fs::file_size(output), 1'000'000u);
    fs::remove(output);
  }
  // There is nothing in an empty file, as mktemp makes it.
  WriteFile(output, "");
  EXPECT_EQ(RunProgram({"quantize", model_, output, "Q8_0"}).status, 0);
}

TEST_F(Overwrite, ExistingChatsOnlyByName) {
  const std::string path = Path("chat");
  ASSERT_EQ(Chat("/save " + path).status, 0);
  const std::string before = ReadFile(path);
  const ProgramResult refused = Chat("JULIET:\n/save " + path);
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr(path), HasSubstr("/save! replaces it")));
  EXPECT_EQ(ReadFile(path), before);
  EXPECT_EQ(Chat("JULIET:\n/save! " + path).status, 0);
  EXPECT_NE(ReadFile(path), before);
}

TEST_F(Overwrite, AsksOnATerminal) {
  const std::string output = Path("output");
  WriteFile(output, std::string(kModelMagic));
  const std::vector<std::string> quantize = {"quantize", model_, output, "Q8_0"};
  for (const char* answer : {"n\n", "\n", "maybe\n", "\x04"}) {
    const ProgramResult no = RunOnTerminal(quantize, answer, {});
    EXPECT_EQ(no.status, 1);
    EXPECT_THAT(no.out, AllOf(HasSubstr(output + " exists; replace it? [y/N]"),
                              HasSubstr("was left as it is")));
    EXPECT_EQ(ReadFile(output), kModelMagic);
  }
  EXPECT_EQ(RunOnTerminal(quantize, "y\n", {}).status, 0);
  EXPECT_GT(fs::file_size(output), 1'000'000u);
}

TEST_F(Overwrite, TheChatAsksOnATerminal) {
  const std::string path = Path("chat");
  ASSERT_EQ(Chat("/save " + path).status, 0);
  const std::string before = ReadFile(path);
  Terminal terminal({"chat", "-m", model_, "-n", "2"}, {{"TERM", "xterm"}});
  terminal.WaitFor("> ");
  terminal.Type("/save " + path + "\n");
  terminal.WaitFor("replace it? [y/N] ");
  terminal.Type("no\n");
  terminal.WaitFor("was left as it is");
  EXPECT_EQ(ReadFile(path), before);
  terminal.WaitFor("> ");
  terminal.Type("/save " + path + "\n");
  terminal.WaitFor("replace it? [y/N] ");
  terminal.Type("yes\n");
  terminal.WaitFor("saved 0 turns");
  terminal.WaitFor("> ");
  terminal.Type("/exit\n");
  EXPECT_EQ(terminal.Finish().status, 0);
  EXPECT_NE(ReadFile(path), before);
}

TEST_F(Overwrite, ConversationsAreTheirOwnersAlone) {
  const auto mode = [](const std::string& path) {
    struct stat info {};
    EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
    return info.st_mode & 0777;
  };
  const std::string session = Path("session"), chat = Path("chat");
  ASSERT_EQ(Generate(session).status, 0);
  ASSERT_EQ(Chat("/save " + chat).status, 0);
  EXPECT_EQ(mode(session), 0600u);
  EXPECT_EQ(mode(chat), 0600u);
  // What somebody has chosen stays, and links stay links.
  for (const mode_t chosen : {0640, 0600, 0664}) {
    ASSERT_EQ(chmod(session.c_str(), chosen), 0);
    ASSERT_EQ(chmod(chat.c_str(), chosen), 0);
    ASSERT_EQ(Generate(session).status, 0);
    ASSERT_EQ(Chat("/save! " + chat).status, 0);
    EXPECT_EQ(mode(session), chosen);
    EXPECT_EQ(mode(chat), chosen);
  }
  fs::create_directory(Path("elsewhere"));
  fs::rename(session, Path("elsewhere/session"));
  ASSERT_EQ(symlink("elsewhere/session", session.c_str()), 0);
  const size_t size = fs::file_size(session);
  ASSERT_EQ(Generate(session).status, 0);
  EXPECT_TRUE(fs::is_symlink(session));
  EXPECT_GT(fs::file_size(Path("elsewhere/session")), size);
}

}  // namespace
}  // namespace inlay
