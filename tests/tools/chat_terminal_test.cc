// inlay chat as a person types in it: keys, colours, history, and that nothing is lost.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/temp_folder.h"
#include "tests/tools/program.h"

namespace inlay {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr char kCtrlD[] = "\x04", kCtrlZ[] = "\x1a", kTab[] = "\t";
constexpr char kUp[] = "\x1b[A";

class ChatTerminal : public testing::Test {
 protected:
  // A chat on a terminal whose user has a folder of its own.
  std::map<std::string, std::string> Env(std::map<std::string, std::string> more = {}) const {
    more.insert({{"TERM", "xterm"}, {"HOME", folder_.path()}, {"LANG", "C.UTF-8"}});
    return more;
  }

  static std::vector<std::string> Chat(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"chat", "-s", "1", "-n", "8"});
    return more;
  }

  // Of a chat without a terminal and this user.
  ProgramResult Pipe(const std::string& input, const std::vector<std::string>& more) const {
    return RunProgram(Chat(more), {.input = input, .env = Env()});
  }

  std::vector<std::string> Kept() const {
    std::vector<std::string> names;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder_.Path(".local/state/inlay/chats"), none))
      names.push_back(entry.path().filename());
    return names;
  }

  static void Exit(Terminal& terminal) {
    terminal.Type("/exit\n");
    EXPECT_EQ(terminal.Finish().status, 0);
  }

  const TempFolder folder_;
};

TEST_F(ChatTerminal, OpensWithTheModelItsTypeAndContext) {
  Terminal terminal(Chat(), Env());
  terminal.WaitFor("models/bard.gguf: bard, F16, a context of 2048 tokens");
  terminal.WaitFor("/help lists the commands");
  terminal.WaitFor("> ");
  Exit(terminal);
}

TEST_F(ChatTerminal, SaysThatTheModelHasNoChatTemplate) {
  EXPECT_THAT(RunOnTerminal({"chat"}, "/exit\n", Env()).out,
              HasSubstr("as plain text, up to 128 tokens (-n); --chat-template"));
  EXPECT_THAT(RunOnTerminal({"chat", "-n", "-1"}, "/exit\n", Env()).out,
              HasSubstr("as plain text, until the context is full; --chat-template"));
  WriteFile(folder_.Path("chat.jinja"), "{{ messages[-1].content }}");
  EXPECT_THAT(
      RunOnTerminal({"chat", "--chat-template", folder_.Path("chat.jinja")}, "/exit\n", Env()).out,
      Not(HasSubstr("no chat template")));
}

TEST_F(ChatTerminal, ColoursTheTwoVoices) {
  const std::string typed = "ROMEO:\n/exit\n";
  EXPECT_THAT(RunOnTerminal(Chat(), typed, Env()).out,
              AllOf(HasSubstr("\x1b[32m"), HasSubstr("\x1b[0m"), HasSubstr("\x1b[2m")));
  EXPECT_THAT(RunOnTerminal(Chat(), typed, Env({{"NO_COLOR", "1"}})).out,
              AllOf(Not(HasSubstr("\x1b[32m")), Not(HasSubstr("\x1b[2m"))));
  EXPECT_THAT(RunOnTerminal(Chat(), typed, {{"TERM", "dumb"}, {"HOME", folder_.path()}}).out,
              Not(HasSubstr("\x1b")));
}

TEST_F(ChatTerminal, CtrlCClearsAHalfTypedLine) {
  Terminal terminal(Chat(), Env());
  terminal.WaitFor("> ");
  terminal.Type("/exit");
  terminal.WaitFor("/exit");
  terminal.Type(kCtrlC);
  terminal.WaitFor("^C");
  terminal.WaitFor("> ");
  terminal.Type("/stats\n");
  terminal.WaitFor("turns: 0;");
  terminal.WaitFor("> ");
  // Once on an empty line, something else, and once more: still there.
  terminal.Type(kCtrlC);
  terminal.WaitFor("once more ends the chat");
  terminal.WaitFor("> ");
  terminal.Type("half");
  terminal.WaitFor("half");
  terminal.Type(kCtrlC);
  terminal.WaitFor("> ");
  terminal.Type(kCtrlC);
  terminal.WaitFor("once more ends the chat");
  terminal.WaitFor("> ");
  terminal.Type("/stats\n");
  terminal.WaitFor("turns: 0;");
  terminal.WaitFor("> ");
  Exit(terminal);
}

TEST_F(ChatTerminal, CtrlCTwiceOnAnEmptyLineEnds) {
  Terminal terminal(Chat(), Env());
  const termios before = terminal.Settings();
  terminal.WaitFor("> ");
  terminal.Type(kCtrlC);
  terminal.WaitFor("once more ends the chat");
  terminal.WaitFor("> ");
  terminal.Type(kCtrlC);
  EXPECT_EQ(terminal.Finish().status, 0);
  EXPECT_EQ(terminal.Settings().c_lflag, before.c_lflag);
}

TEST_F(ChatTerminal, CtrlDEnds) {
  Terminal terminal(Chat(), Env());
  terminal.WaitFor("> ");
  terminal.Type(kCtrlD);
  const ProgramResult result = terminal.Finish();
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.out, EndsWith("\n")) << "the shell's prompt begins a line";
}

// Without sending what was begun.
TEST_F(ChatTerminal, CtrlDEndsWithinAMessage) {
  for (const char* begun : {"\"\"\"ROMEO:\n", "ROMEO:\\\n"}) {
    for (const char* term : {"xterm", "dumb"}) {
      Terminal terminal(Chat(), Env({{"TERM", term}}));
      terminal.WaitFor("> ");
      terminal.Type(begun);
      terminal.WaitFor("... ");
      terminal.Type(kCtrlD);
      EXPECT_EQ(terminal.Finish().status, 0);
      EXPECT_THAT(Kept(), IsEmpty()) << begun;
    }
  }
  EXPECT_THAT(Pipe("\"\"\"ROMEO:\n", {}).out, Not(IsEmpty())) << "a file may leave a message open";
}

// Neither function keys nor others with Shift, Alt or Ctrl put characters into the line.
TEST_F(ChatTerminal, KeysWithoutAMeaningDoNothing) {
  Terminal terminal(Chat(), Env());
  terminal.WaitFor("> ");
  for (const char* key : {"\x1b[2~", "\x1b[5~", "\x1b[6~", "\x1bOP", "\x1b[15~", "\x1b[24~",
                          "\x1b[1;2A", "\x1b[1;5B", "\x1b[1;3H", "\x1b[5;5~", "\x1b[Z"})
    terminal.Type(key);
  terminal.Type("/stats\n");
  terminal.WaitFor("turns: 0;");
  terminal.WaitFor("> ");
  Exit(terminal);
}

// In a session of its own the process cannot be stopped: it goes on at once.
TEST_F(ChatTerminal, GoesOnAfterCtrlZ) {
  Terminal terminal(Chat(), Env());
  terminal.WaitFor("> ");
  terminal.Type("/sta");
  terminal.WaitFor("/sta");
  terminal.Type(kCtrlZ);
  // What stops leaves neither bracketed paste nor its colour to the shell, and has both again.
  for (const char* shown : {"\x1b[?2004l", "\x1b[0m", "\x1b[?2004h", "\x1b[32m", "/sta"})
    terminal.WaitFor(shown);
  terminal.Type("ts\n");
  terminal.WaitFor("turns: 0;");
  Exit(terminal);
}

// As where libedit is missing.
TEST_F(ChatTerminal, WorksWithTheTerminalsOwnEditing) {
  Terminal terminal(Chat(), Env({{"TERM", "dumb"}}));
  const termios before = terminal.Settings();
  terminal.WaitFor("> ");
  terminal.Type(kCtrlZ);
  terminal.WaitFor("> ");
  terminal.Type("ROMEO:\n");
  terminal.WaitFor("ROMEO:");
  terminal.WaitFor("> ");
  terminal.Type("/exit");
  terminal.WaitFor("/exit");
  terminal.Type(kCtrlC);
  terminal.WaitFor("once more ends the chat");
  terminal.WaitFor("> ");
  terminal.Type("/forks\n/stats\n");
  terminal.WaitFor("there are no forks");
  terminal.WaitFor("turns: 1;");
  terminal.WaitFor("> ");
  terminal.Type("\"\"\"A:\n/exit\nB:\"\"\"\n");
  terminal.WaitFor("... ");
  terminal.WaitFor("> ");
  terminal.Type("/stats\n");
  terminal.WaitFor("turns: 2;");
  terminal.Type(kCtrlD);
  const ProgramResult result = terminal.Finish();
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.out, Not(HasSubstr("\x1b")));
  EXPECT_EQ(terminal.Settings().c_lflag, before.c_lflag);
  EXPECT_EQ(Kept().size(), 1u);
}

TEST_F(ChatTerminal, APasteIsOneMessage) {
  Terminal terminal(Chat(), Env());
  terminal.WaitFor("\x1b[?2004h");
  terminal.WaitFor("> ");
  terminal.Type("\x1b[200~ROMEO:\r/exit\rJULIET:\x1b[201~");
  terminal.WaitFor("JULIET:");
  terminal.Type(" x\n");
  terminal.WaitFor("\x1b[?2004l");
  terminal.WaitFor("> ");
  terminal.Type("/stats\n");
  terminal.WaitFor("turns: 1;");
  terminal.WaitFor("> ");
  terminal.Type("/save ~/chat\n");
  terminal.WaitFor("saved 1 turn");
  Exit(terminal);
  EXPECT_THAT(ReadFile(folder_.Path("chat")), HasSubstr("ROMEO:\n/exit\nJULIET: x"));
}

TEST_F(ChatTerminal, QuotesHoldAMessageOfSeveralLines) {
  Terminal terminal(Chat(), Env());
  terminal.WaitFor("> ");
  terminal.Type("\"\"\"\n");
  terminal.WaitFor("... ");
  terminal.Type("ROMEO:\n");
  terminal.WaitFor("... ");
  terminal.Type("JULIET:\"\"\"\n");
  terminal.WaitFor("> ");
  terminal.Type("/stats\n");
  terminal.WaitFor("turns: 1;");
  Exit(terminal);
  const std::string expected = Pipe("ROMEO:\\\nJULIET:\n", {}).out;
  EXPECT_EQ(Pipe("\"\"\"ROMEO:\nJULIET:\"\"\"\n", {}).out, expected);
  EXPECT_EQ(Pipe("\"\"\"\nROMEO:\nJULIET:\n\"\"\"\n", {}).out, expected);
}

TEST_F(ChatTerminal, RemembersLines) {
  {
    Terminal terminal(Chat(), Env());
    terminal.WaitFor("> ");
    terminal.Type("/forks\n");
    terminal.WaitFor("there are no forks");
    terminal.WaitFor("> ");
    Exit(terminal);
  }
  const std::string history = folder_.Path(".local/state/inlay/history/chat");
  EXPECT_EQ(fs::status(history).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  // Each line once, after the one that names the file's format.
  EXPECT_THAT(ReadFile(history), EndsWith("_\n/forks\n/exit\n"));
  Terminal terminal(Chat(), Env());
  terminal.WaitFor("> ");
  terminal.Type(kUp);
  terminal.WaitFor("/exit");
  terminal.Type(kUp);
  terminal.WaitFor("forks");
  terminal.Type("\n");
  terminal.WaitFor("there are no forks");
  terminal.WaitFor("> ");
  Exit(terminal);
}

TEST_F(ChatTerminal, TabCompletesCommandsAndPaths) {
  WriteFile(folder_.Path("some-long-name"), "x");
  Terminal terminal(Chat(), Env());
  terminal.WaitFor("> ");
  terminal.Type(std::string("/sta") + kTab + "\n");
  terminal.WaitFor("turns: 0;");
  terminal.WaitFor("> ");
  terminal.Type(std::string("/fo") + kTab + kTab);
  terminal.WaitFor("/fork");
  terminal.WaitFor("/forks");
  terminal.Type("s\n");
  terminal.WaitFor("there are no forks");
  terminal.WaitFor("> ");
  terminal.Type(std::string("/load ~/some") + kTab + "\n");
  terminal.WaitFor(folder_.Path("some-long-name") + ": ");
  terminal.WaitFor("> ");
  Exit(terminal);
}

TEST_F(ChatTerminal, IsKeptWhateverHappens) {
  Terminal terminal(Chat({"--system", "A tragedy."}), Env());
  terminal.WaitFor("> ");
  terminal.Type("ROMEO:\n");
  terminal.WaitFor("\n");
  terminal.WaitFor("> ");
  kill(terminal.pid(), SIGKILL);
  EXPECT_EQ(terminal.Finish().status, 128 + SIGKILL);
  EXPECT_EQ(Kept().size(), 1u);
  const ProgramResult next = Pipe("/stats\n/system\nJULIET:\n/stats\n", {"--continue"});
  EXPECT_EQ(next.status, 0) << next.err;
  EXPECT_THAT(next.err,
              AllOf(HasSubstr("turns: 1;"), HasSubstr("A tragedy."), HasSubstr("turns: 2;")));
  EXPECT_EQ(next.out, Pipe("ROMEO:\nJULIET:\n", {"--system", "A tragedy."})
                          .out.substr(Pipe("ROMEO:\n", {"--system", "A tragedy."}).out.size()))
      << "it goes on as if it had not ended";
  EXPECT_EQ(Kept().size(), 1u) << "the same chat";
  EXPECT_THAT(Pipe("/stats\n", {"--continue"}).err, HasSubstr("turns: 2;"));
  // Another chat is another one, and the newest.
  EXPECT_EQ(Pipe("NURSE:\n", {"--autosave"}).status, 0);
  EXPECT_EQ(Kept().size(), 2u);
  EXPECT_THAT(Pipe("/stats\n", {"--continue"}).err, HasSubstr("turns: 1;"));
  // So is what follows /clear.
  EXPECT_EQ(Pipe("A:\n/clear\nB:\nC:\n", {"--autosave"}).status, 0);
  EXPECT_EQ(Kept().size(), 4u);
  EXPECT_THAT(Pipe("/stats\n", {"--continue"}).err, HasSubstr("turns: 2;"));
}

// The command that goes on with a chat can be typed as it is shown.
TEST_F(ChatTerminal, NamesTheCommandThatGoesOn) {
  const std::string model = folder_.Path("a model.gguf");
  fs::create_symlink(fs::absolute(kDemoModel), model);
  {
    Terminal terminal(Chat({model, "-c", "512", "--chat-template", "none"}), Env());
    terminal.WaitFor("> ");
    terminal.Type("ROMEO:\n");
    terminal.WaitFor("\n");
    terminal.WaitFor("> ");
    terminal.Type("/exit\n");
    EXPECT_THAT(terminal.Finish().out,
                HasSubstr("inlay chat '" + model +
                          "' --continue -c 512 --chat-template none goes on with this chat"));
  }
  ExpectError(Pipe("", {"--continue", "-c", "5"}), 1, HasSubstr("the limit here is 5 (-c)"));
  // What was said last is shown.
  Terminal terminal(Chat({model, "--continue"}), Env());
  terminal.WaitFor("going on after turn 1");
  terminal.WaitFor("> ROMEO:");
  terminal.WaitFor("/help lists");
  Exit(terminal);
}

TEST_F(ChatTerminal, ReachesAnyKeptChat) {
  EXPECT_EQ(Pipe("ROMEO:\n", {"--autosave"}).status, 0);
  EXPECT_EQ(Pipe("JULIET:\nNURSE:\n", {"--autosave"}).status, 0);
  const ProgramResult result = Pipe("/chats\n/chats 2\n/show\n/chats\n", {"--autosave"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr(", 2 turns: JULIET:\n2: "), HasSubstr(", 1 turn: ROMEO:"),
                                HasSubstr("after turn 1, "), HasSubstr("> ROMEO:\n")));
  EXPECT_EQ(Kept().size(), 2u);
  EXPECT_THAT(Pipe("/stats\n", {"--continue"}).err, HasSubstr("turns: 1;")) << "the newest now";
  ExpectError(Pipe("/chats 3\n", {"--autosave"}), 1, HasSubstr("there is no chat 3 among 2"));
  // Numbers are those of the list that was shown, though going on with JULIET's makes it the
  // newest.
  EXPECT_THAT(Pipe("/chats\n/chats 2\n/chats 1\n/chats 2\n/stats\n", {"--autosave"}).err,
              AllOf(HasSubstr("\n2: "), HasSubstr("> ROMEO:\n"), HasSubstr("turns: 2;")));
  ExpectError(Pipe("/chats\n", {}), 1, HasSubstr("no chats are kept here"));
}

// As in `inlay chat | tee log`: the prompt, editing, keeping, and errors that end nothing.
TEST_F(ChatTerminal, IsForWhoeverTypesWhereverTheAnswersGo) {
  const std::string log = folder_.Path("log");
  Terminal terminal(Chat(), Env(), log);
  terminal.WaitFor("/help lists the commands");
  terminal.WaitFor("\x1b[32m");
  terminal.WaitFor("> ");
  terminal.Type("ROMEO:\n");
  terminal.WaitFor("ROMEO:");
  terminal.WaitFor("> ");
  terminal.Type("/sing\n");
  terminal.WaitFor("'/sing' is not a command");
  terminal.WaitFor("> ");
  terminal.Type(std::string("/sta") + kTab + "\n");
  terminal.WaitFor("turns: 1;");
  terminal.WaitFor("> ");
  Exit(terminal);
  EXPECT_EQ(ReadFile(log), Pipe("ROMEO:\n", {}).out);
  EXPECT_EQ(Kept().size(), 1u);
}

// The commands since the last answer count, too.
TEST_F(ChatTerminal, IsKeptAsItEnds) {
  {
    Terminal terminal(Chat(), Env());
    terminal.WaitFor("> ");
    terminal.Type("ROMEO:\n");
    terminal.WaitFor("\n");
    terminal.WaitFor("> ");
    terminal.Type("/rewind\n");
    terminal.WaitFor("back after turn 0");
    terminal.WaitFor("> ");
    terminal.Type(kCtrlD);
    const ProgramResult result = terminal.Finish();
    EXPECT_EQ(result.status, 0);
    EXPECT_THAT(result.out, Not(HasSubstr("goes on with this chat")));
    EXPECT_THAT(Kept(), IsEmpty()) << "nothing is left of it";
  }
  EXPECT_EQ(Pipe("ROMEO:\n/rewind\n", {"--autosave"}).status, 0);
  EXPECT_THAT(Kept(), IsEmpty());
  const std::string saved = folder_.Path("saved");
  EXPECT_EQ(Pipe("NURSE:\n/save " + saved + "\n", {}).status, 0);
  EXPECT_EQ(Pipe("A:\nB:\n/rewind\n/system Ay.\n/load " + saved + "\n", {"--autosave"}).status, 0);
  std::vector<std::string> kept = Kept();
  ASSERT_EQ(kept.size(), 2u) << "what was loaded is another one";
  fs::remove(folder_.Path(".local/state/inlay/chats/" + std::max(kept[0], kept[1])));
  EXPECT_THAT(Pipe("/stats\n/system\n", {"--continue"}).err,
              AllOf(HasSubstr("turns: 1;"), HasSubstr("Ay.")));
}

TEST_F(ChatTerminal, IsKeptOnlyWhereThatIsWanted) {
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{"--no-autosave"}, {"--sandbox"}}) {
    Terminal terminal(Chat(flags), Env());
    terminal.WaitFor("> ");
    terminal.Type("ROMEO:\n");
    terminal.WaitFor("\n");
    terminal.WaitFor("> ");
    Exit(terminal);
    EXPECT_FALSE(fs::exists(folder_.Path(".local"))) << flags[0];
  }
  EXPECT_EQ(Pipe("ROMEO:\n", {}).status, 0);
  EXPECT_FALSE(fs::exists(folder_.Path(".local"))) << "nobody is typing";
  ExpectError(Pipe("", {"--continue"}), 1,
              HasSubstr("models/bard.gguf: no chat with this model has been kept"));
  ExpectError(Pipe("", {"--continue", "--no-autosave"}), 2, HasSubstr("--no-autosave"));
  ExpectError(Pipe("", {"--continue", "--sandbox"}), 2, HasSubstr("--sandbox"));
  ExpectError(RunProgram({"chat", "--continue"}), 1, HasSubstr("HOME"));
}

// It keeps the system prompt that it has: another one is refused, not dropped.
TEST_F(ChatTerminal, GoesOnWithoutAnotherSystemPrompt) {
  WriteFile(folder_.Path("system"), "A comedy.");
  for (const std::vector<std::string>& flags : std::vector<std::vector<std::string>>{
           {"--continue", "--system", "A comedy."},
           {"--continue", "-sys", "A comedy."},
           {"--continue", "--system-file", folder_.Path("system")}})
    ExpectError(Pipe("", flags), 2, HasSubstr("/system TEXT replaces it"));
}

TEST_F(ChatTerminal, GoesOnWhereNothingCanBeKept) {
  WriteFile(folder_.Path(".local"), "no folder");
  Terminal terminal(Chat(), Env());
  terminal.WaitFor("> ");
  terminal.Type("ROMEO:\n/stats\n");
  terminal.WaitFor("turns: 1;");
  terminal.WaitFor("> ");
  terminal.Type("/exit\n");
  const ProgramResult result = terminal.Finish();
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.out, Not(HasSubstr("goes on with this chat")));
}

TEST_F(ChatTerminal, SaysOnceThatItCannotBeKept) {
  Terminal terminal(Chat(), Env());
  terminal.WaitFor("> ");
  fs::remove_all(folder_.Path(".local"));
  terminal.Type("ROMEO:\n");
  const std::string note = "this chat cannot be kept: ";
  terminal.WaitFor(note);
  terminal.WaitFor("> ");
  terminal.Type("JULIET:\n/stats\n");
  terminal.WaitFor("turns: 2;");
  terminal.WaitFor("> ");
  terminal.Type("/exit\n");
  const ProgramResult result = terminal.Finish();
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.out.find(note), result.out.rfind(note)) << result.out;
  EXPECT_THAT(result.out, Not(HasSubstr("goes on with this chat")));
}

TEST_F(ChatTerminal, KeepsChatsInAStore) {
  fs::create_directory(folder_.Path("store"));
  const std::vector<std::string> flags = {"--store", folder_.Path("store")};
  EXPECT_THAT(Pipe("ROMEO:\n/save play\nJULIET:\n", flags).err, HasSubstr("saved 1 turn"));
  EXPECT_TRUE(fs::exists(folder_.Path("store/play.state")));
  EXPECT_THAT(Pipe("/load play\n/stats\n", flags).err, HasSubstr("turns: 1;"));
  ExpectError(Pipe("/save play\n", flags), 1, HasSubstr("/save! replaces it"));
  EXPECT_EQ(Pipe("/save! play\n", flags).status, 0);
  ExpectError(Pipe("/load none\n", flags), 1, HasSubstr("none"));
  ExpectError(Pipe("", {"--store", folder_.Path("missing")}), 2, HasSubstr("--store"));
}

TEST_F(ChatTerminal, CommandsChangeAndShowTheChat) {
  const ProgramResult result = Pipe(
      "/forks\nROMEO:\n/fork\n/fork\n/forks\n/drop 1\n/forks\n/temp\n/temp 0\n/temp\n"
      "/system\n/system A tragedy.\n/system\n/system \"\"\n/system\n/seed 7\n",
      {});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("there are no forks"), HasSubstr("fork 1: 1 turn, "),
                    HasSubstr("fork 2: 1 turn, "), HasSubstr("fork 1 is gone"),
                    HasSubstr("temperature: 0\n"), HasSubstr("there is no system prompt"),
                    HasSubstr("computed anew"), HasSubstr("A tragedy.\n"),
                    HasSubstr("the next answer has seed 7")));
  // Seeds can be learned, also one that was drawn.
  EXPECT_THAT(Pipe("/seed\nROMEO:\n/seed 7\n/seed\nJULIET:\n/stats\n", {}).err,
              AllOf(HasSubstr("the next answer has seed 1\n"),
                    HasSubstr("the next answer has seed 7\nthe next answer has seed 7\n"),
                    HasSubstr("; seed 7\nthe next answer has seed 8\n")));
  EXPECT_THAT(Pipe("/seed -1\n", {}).err, AllOf(HasSubstr("the next answer has seed "),
                                                Not(HasSubstr("seed 18446744073709551615"))));
  ExpectError(Pipe("/seed -2\n", {}), 1, HasSubstr("/seed accepts one number, not '-2'"));
  ExpectError(Pipe("/drop\n", {}), 1, HasSubstr("/drop accepts one number"));
  ExpectError(Pipe("/drop 1\n", {}), 1, HasSubstr("no fork 1"));
  ExpectError(Pipe("/temp hot\n", {}), 1, HasSubstr("from 0 to 100, not 'hot'"));
  ExpectError(Pipe("/temp nan\n", {}), 1, HasSubstr("from 0 to 100"));
  ExpectError(Pipe("/tokens\n", {}), 1, HasSubstr("no answer"));
  ExpectError(Pipe("A\n/tokens 21\n", {}), 1, HasSubstr("at most 20"));
  // The seed and the temperature are those of the flags.
  EXPECT_EQ(RunProgram({"chat", "-n", "20", "-s", "3"}, {.input = "/seed 1\nROMEO:\n"}).out,
            RunProgram({"chat", "-n", "20", "-s", "1"}, {.input = "ROMEO:\n"}).out);
  EXPECT_EQ(RunProgram({"chat", "-n", "20", "-s", "3"}, {.input = "/temp 0\nROMEO:\n"}).out,
            RunProgram({"chat", "-n", "20", "--temp", "0"}, {.input = "ROMEO:\n"}).out);
  EXPECT_EQ(
      RunProgram({"chat", "-n", "20", "-s", "1"}, {.input = "/system Ay.\nROMEO:\n"}).out,
      RunProgram({"chat", "-n", "20", "-s", "1", "--system", "Ay."}, {.input = "ROMEO:\n"}).out);
}

TEST_F(ChatTerminal, TokensAreShownWithProbabilities) {
  const std::string err = Pipe("ROMEO:\n/tokens 1\n", {"--temp", "0"}).err;
  EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 8) << err;
  EXPECT_THAT(err, AllOf(HasSubstr(" % \""), HasSubstr(";  ")));
}

TEST_F(ChatTerminal, MakesRoomInAFullContext) {
  const std::string said = "A:\nB:\nC:\nD:\nE:\nF:\nG:\nH:\nI:\nJ:\nK:\nL:\n/stats\n";
  const ProgramResult trimmed = Pipe(said, {"-c", "100", "--on-full", "trim"});
  EXPECT_EQ(trimmed.status, 0) << trimmed.err;
  EXPECT_THAT(trimmed.err, AllOf(HasSubstr("the context of 100 tokens is full: forgot the "),
                                 HasSubstr(" anew\n"), Not(HasSubstr("turns: 12;"))));
  const ProgramResult stopped = Pipe(said, {"-c", "100", "--on-full", "stop"});
  EXPECT_EQ(stopped.status, 1);
  EXPECT_THAT(stopped.err, AllOf(HasSubstr("the context of 100 tokens is full"),
                                 HasSubstr("tokens of the context of 100 are left")));
  // Where that would not make room, nothing is forgotten.
  const ProgramResult too_long =
      Pipe("A:\n" + std::string(500, 'x') + "\n", {"-c", "100", "--on-full", "trim"});
  EXPECT_EQ(too_long.status, 1);
  EXPECT_THAT(too_long.err,
              AllOf(Not(HasSubstr("forgot")), HasSubstr("of the context of 100 are left")));
  ExpectError(Pipe("", {"--on-full", "shift"}), 2, HasSubstr("'shift' is not one of stop, trim"));
}

TEST_F(ChatTerminal, TakesTheSystemPromptFromAFile) {
  WriteFile(folder_.Path("system"), "A tragedy.");
  EXPECT_EQ(Pipe("ROMEO:\n", {"--system-file", folder_.Path("system")}).out,
            Pipe("ROMEO:\n", {"-sys", "A tragedy."}).out);
  ExpectError(Pipe("", {"--system-file", "no/such"}), 1, HasSubstr("no/such"));
}

}  // namespace
}  // namespace inlay
