// What is different on a terminal: colour, a greeting, a prompt, and that nothing in a file steers
// it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "tests/io/gguf/gguf_bytes.h"
#include "tests/tools/program.h"
#include "tools/output.h"

namespace inlay {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(Terminal, DimsTheFooter) {
  const std::vector<std::string> arguments = {"generate", "-p", "ROMEO:", "-n", "3"};
  EXPECT_THAT(RunOnTerminal(arguments, "", {{"TERM", "xterm"}}).out, HasSubstr("\033[2m["));
  EXPECT_THAT(RunOnTerminal(arguments, "", {{"TERM", "dumb"}}).out, Not(HasSubstr("\033")));
  EXPECT_THAT(RunOnTerminal(arguments, "", {{"TERM", "xterm"}, {"NO_COLOR", "1"}}).out,
              Not(HasSubstr("\033")));
}

TEST(Terminal, AsksForAPromptInsteadOfWaiting) {
  const ProgramResult result = RunOnTerminal({"generate"}, "", {});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.out, HasSubstr("a prompt is needed"));
}

TEST(Terminal, ChatsWithAPersonAndSurvivesErrors) {
  const ProgramResult result =
      RunOnTerminal({"chat", "-n", "5"}, "/sing\nROMEO:\n/stats\n/exit\n", {{"TERM", "xterm"}});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.out, AllOf(HasSubstr("/help lists"), HasSubstr("> "),
                                HasSubstr("'/sing' is not a command"), HasSubstr("turns: 1;")));
}

// The template opens the thoughts, and the demo model, which knows of none, never ends them.
TEST(Terminal, DimsThoughts) {
  const std::string path = ScratchPath("thinks.jinja");
  const std::vector<std::string> chat = {"chat", "-n", "5", "--chat-template", path};
  const std::string said = "{{ messages[-1].content }}\nROMEO:\n";
  WriteFile(path, said + "{{ '<think>' if add_generation_prompt }}{# </think> #}");
  // After the opening, which is dimmed too.
  const auto answer = [&] {
    const std::string out = RunOnTerminal(chat, "x\n/exit\n", {{"TERM", "xterm"}}).out;
    return out.substr(out.find("> x"));
  };
  EXPECT_THAT(answer(), HasSubstr("\033[2m"));
  WriteFile(path, said + "{{ '<think></think>' if add_generation_prompt }}");
  EXPECT_THAT(answer(), Not(HasSubstr("\033[2m")));
  unlink(path.c_str());
}

// A sequence that changes the colour, in seven bits and in one C1 character, and one that turns the
// text around.
constexpr char kRed[] = "\x1b[31m";
constexpr char kCsi[] = "\u009b31m";
constexpr char kTurn[] = "\u202e";

auto HasNoSequence() {
  return AllOf(Not(HasSubstr(kRed)), Not(HasSubstr(kCsi)), Not(HasSubstr(kTurn)));
}

// A file whose keys, values and tensors are named to steer the terminal that shows them.
class HostileFile : public testing::Test {
 protected:
  HostileFile() : path_(ScratchPath("gguf")) {
    GgufBytes file;
    file.Header(1, 3)
        .Key("general.architecture", GgufType::kString)
        .Text(absl::StrCat("arch", kRed, kCsi, kTurn))
        .Key(absl::StrCat("key", kRed, kCsi, kTurn), GgufType::kUint32)
        .U32(1)
        .Key("forged\n  general.license", GgufType::kString)
        .Text(absl::StrCat("value", kRed, kCsi, kTurn))
        .Tensor(absl::StrCat("tensor", kRed, kCsi, kTurn), {1}, 0, 0)
        .PadTo(32)
        .Put<float>(1)
        .PadTo(32);
    WriteFile(path_, file.bytes());
  }
  ~HostileFile() override { unlink(path_.c_str()); }

  std::string path_;
};

TEST_F(HostileFile, IsInspectedSafely) {
  constexpr char kShown[] = "\\u001b[31m\\u009b31m\\u202e";
  const auto shown = [&](const char* what) { return HasSubstr(absl::StrCat(what, kShown)); };
  const auto expect = [&](const std::string& out, const std::string& err) {
    EXPECT_THAT(out + err, HasNoSequence());
    EXPECT_THAT(out, AllOf(shown("key"), shown("value"), shown("tensor"), shown("arch")));
    EXPECT_THAT(out, HasSubstr("\n  forged\\n  general.license "));
    EXPECT_THAT(err, shown("has architecture 'arch"));
  };
  const ProgramResult piped = RunProgram({"inspect", "-m", path_});
  expect(piped.out, piped.err);
  const ProgramResult terminal = RunOnTerminal({"inspect", "-m", path_}, "", {{"TERM", "xterm"}});
  const std::string text = absl::StrReplaceAll(terminal.out, {{"\r\n", "\n"}});
  expect(text, text);
}

// Escaped for the terminal, the same for a program that reads it.
TEST_F(HostileFile, IsTheSameInJson) {
  const ProgramResult result = RunProgram({"inspect", "-m", path_, "-o", "json"});
  EXPECT_THAT(result.out, HasNoSequence());
  EXPECT_EQ(result.Json()["metadata"]["general.architecture"],
            absl::StrCat("arch", kRed, kCsi, kTurn));
}

TEST_F(HostileFile, SteersNothingFromAnErrorMessage) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"generate", "-p", "A", "-m", path_},
           {"tokenize", "LICENSE", "-m", path_},
           {"quantize", path_, ScratchPath("q8"), "Q8_0"},
           {"pack", path_, ScratchPath("packed")},
           {"generate", "-p", "A", "-m", absl::StrCat("no/such", kRed, kCsi, kTurn)},
           {absl::StrCat("sing", kRed, kCsi, kTurn)},
           {"chat", absl::StrCat("--no", kRed, kCsi, kTurn)}}) {
    SCOPED_TRACE(arguments.front());
    const ProgramResult piped = RunProgram(arguments);
    EXPECT_THAT(piped.err, HasNoSequence());
    EXPECT_THAT(RunOnTerminal(arguments, "", {{"TERM", "xterm"}}).out, HasNoSequence());
  }
}

// The demo model, in whose vocabulary a frequent word is a sequence instead.
class HostileVocabulary : public testing::Test {
 protected:
  HostileVocabulary() : path_(ScratchPath("gguf")) {
    std::string bytes = ReadFile("models/bard.gguf");
    const auto entry = [](const std::string& text) { return GgufBytes().Text(text).bytes(); };
    const std::string be = entry("\u2581be");
    const size_t at = bytes.find(be);
    EXPECT_NE(at, std::string::npos);
    bytes.replace(at, be.size(), entry(kRed));
    WriteFile(path_, bytes);
  }
  ~HostileVocabulary() override { unlink(path_.c_str()); }

  std::string path_;
};

TEST_F(HostileVocabulary, SteersNoTerminal) {
  const std::vector<std::string> generate = {"generate", "-m", path_, "-p",     "ROMEO:", "-n",
                                             "60",       "-t", "1",   "--temp", "0"};
  const std::string shown = "\\u001b[31m";
  const std::string terminal = RunOnTerminal(generate, "", {{"TERM", "dumb"}}).out;
  EXPECT_THAT(terminal, AllOf(HasSubstr(shown), Not(HasSubstr("\x1b"))));
  // Into a pipe or a file go the bytes that the model said.
  const std::string piped = RunProgram(generate).out;
  EXPECT_THAT(piped, AllOf(HasSubstr(kRed), Not(HasSubstr(shown))));
  const std::string text = absl::StrReplaceAll(terminal, {{"\r\n", "\n"}});
  EXPECT_EQ(text.rfind(absl::StrReplaceAll(piped, {{"\x1b", "\\u001b"}}), 0), 0u);

  const std::vector<std::string> chat = {"chat", "-m", path_, "-n", "60", "--temp", "0"};
  EXPECT_THAT(RunProgram(chat, {.input = "ROMEO:\n"}).out,
              AllOf(HasSubstr(shown), Not(HasSubstr("\x1b"))));
  EXPECT_THAT(RunOnTerminal(chat, "ROMEO:\n/exit\n", {{"TERM", "dumb"}}).out,
              AllOf(HasSubstr(shown), Not(HasSubstr(kRed))));
  // Decoding is exact too.
  const std::string ids = RunProgram({"tokenize", "-m", path_}, {.input = "\x1b"}).out;
  EXPECT_EQ(RunProgram({"tokenize", "-m", path_, "--decode"}, {.input = ids}).out, "\x1b\n");
}

TEST(Terminal, ShowsThePromptEscaped) {
  const auto run = [](const std::string& prompt) {
    return RunOnTerminal({"generate", "-p", prompt, "-n", "1"}, "", {{"TERM", "dumb"}}).out;
  };
  EXPECT_THAT(run("A\x1b]0;title\x07"), HasSubstr("A\\u001b]0;title\\u0007"));
  EXPECT_THAT(run("\xff\u00e9"), HasSubstr("\\xff\u00e9"));
  EXPECT_THAT(run("A\tb\nc"), AllOf(Not(HasSubstr("\\")), HasSubstr("\r\nc")));
}

// A character may come in pieces, and may stay incomplete.
TEST(OutputText, IsEscapedWhicheverPiecesItComesIn) {
  const std::string text = "\u00e9\u009b\u2603\u202e\U0001F600\xe2\x82";
  const std::string shown = "\u00e9\\u009b\u2603\\u202e\U0001F600\\xe2\\x82";
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    const std::string path = ScratchPath("text");
    WriteFile(path, "");
    std::FILE* file = std::fopen(path.c_str(), "w");
    Output out(fileno(file));
    for (size_t i = 0; i < text.size(); i += piece) {
      out.Write(text.substr(i, piece));
      out.Flush();
    }
    EXPECT_TRUE(out.Finish().ok());
    std::fclose(file);
    EXPECT_EQ(ReadFile(path), shown) << piece;
    unlink(path.c_str());
  }
}

}  // namespace
}  // namespace inlay
