// inlay chat with the demo model, which has no template: each turn is a line.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/tools/program.h"

namespace inlay {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

ProgramResult Chat(const std::string& input, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"chat", "-s", "1", "-n", "20"});
  return RunProgram(more, {.input = input});
}

TEST(Chat, AnswersInTurns) {
  const ProgramResult one = Chat("ROMEO:\n");
  EXPECT_EQ(one.status, 0);
  EXPECT_GT(one.out.size(), 20u);
  EXPECT_EQ(one.out.back(), '\n');
  EXPECT_THAT(one.err, IsEmpty());  // no greeting, nobody is typing
  const ProgramResult two = Chat("ROMEO:\nJULIET:\n");
  EXPECT_EQ(two.out.substr(0, one.out.size()), one.out);
  EXPECT_GT(two.out.size(), one.out.size() + 20);
  EXPECT_EQ(Chat("ROMEO:\n/exit\nJULIET:\n").out, one.out);
  EXPECT_EQ(Chat("ROMEO:\r\n/exit\r\nJULIET:\r\n").out, one.out) << "a file of Windows";
  EXPECT_EQ(Chat("RO\\\nMEO:\n").status, 0);
}

TEST(Chat, ObeysCommands) {
  const ProgramResult result = Chat(
      "/help\nROMEO:\n/fork\nJULIET:\n/stats\n/rewind\n/stats\n/fork 1\n/rewind 1\n/stats\n/clear\n"
      "//slash\n/stats\n/quit\n");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("/regen"), HasSubstr("/fork 1 continues from here"),
                    HasSubstr("turns: 2;"), HasSubstr("turns: 1;"),
                    HasSubstr("turns: 0; tokens: 0 of 2048"), HasSubstr("removed all turns"),
                    HasSubstr("at fork 1, after turn 1\n")));  // which has all that is left
  EXPECT_THAT(Chat("ROMEO:\n/fork\nJULIET:\n/fork 1\n/fork 2\n/stats\n").err,
              AllOf(HasSubstr("at fork 1, after turn 1; fork 2 keeps where you were\n"),
                    HasSubstr("at fork 2, after turn 2\n"), HasSubstr("turns: 2;")));
}

// The words of other programs' chats.
TEST(Chat, KnowsOtherWordsForItsCommands) {
  const ProgramResult result = Chat("/?\n/bye\nROMEO:\n");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("/regen"));
  EXPECT_THAT(result.out, IsEmpty());
  ExpectError(Chat("/set system x\n"), 1, HasSubstr("'/set' is not a command; /system TEXT"));
  ExpectError(Chat("/undo\n"), 1, HasSubstr("/rewind"));
  ExpectError(Chat("/reset\n"), 1, HasSubstr("/clear"));
  ExpectError(Chat("/image a.png\n"), 1, HasSubstr("models read text alone"));
}

TEST(Chat, ShowsTheConversation) {
  const std::string answers = Chat("ROMEO:\nJULIET:\n").out;
  const std::string first = answers.substr(0, answers.find('\n'));
  const std::string all = Chat("ROMEO:\nJULIET:\n/show\n").err;
  EXPECT_THAT(all, AllOf(HasSubstr("> ROMEO:\n" + first), HasSubstr("> JULIET:\n")));
  EXPECT_THAT(Chat("ROMEO:\nJULIET:\n/show 1\n").err,
              AllOf(testing::Not(HasSubstr("ROMEO:")), HasSubstr("> JULIET:\n")));
  EXPECT_EQ(Chat("ROMEO:\nJULIET:\n/show 9\n").err, all);
  EXPECT_EQ(Chat("/show\n").err, "there are no turns\n");
}

TEST(Chat, RefusesWhatCannotBe) {
  ExpectError(Chat("/sing\n"), 1, HasSubstr("'/sing' is not a command"));
  ExpectError(Chat("/regen\n"), 1, HasSubstr("no answer"));
  ExpectError(Chat("/rewind 1\n"), 1, HasSubstr("cannot rewind 1"));
  ExpectError(Chat("/rewind x\n"), 1, HasSubstr("'x'"));
  ExpectError(Chat("/clear 1\n"), 1, HasSubstr("'1'"));
  ExpectError(Chat("/fork 3\n"), 1, HasSubstr("no fork 3"));
  ExpectError(Chat(std::string(500, 'x') + "\n", {"-c", "100"}), 1, HasSubstr("context of 100"));
}

// The demo model has no template, and a line of a chat ends where its answer's does.
TEST(Chat, IsWrittenByATemplate) {
  const std::string path = ScratchPath("lines.jinja");
  WriteFile(path,
            "{% for m in messages %}{{ m.content }}"
            "{{ '' if m.content.endswith('\n') else '\n' }}{% endfor %}");
  const std::string said = "ROMEO:\nJULIET:\n/rewind\nNURSE:\n/regen\n";
  const ProgramResult own = Chat(said);
  EXPECT_EQ(Chat(said, {"--chat-template", path}).out, own.out);
  EXPECT_EQ(Chat(said, {"--chat-template", path, "--sandbox"}).out, own.out);
  EXPECT_EQ(Chat(said, {"--chat-template", "none"}).out, own.out);
  ExpectError(Chat("A\n", {"--chat-template", "gemma"}), 1, HasSubstr("'<start_of_turn>'"));
  ExpectError(Chat("A\n", {"--chat-template", path + "x"}), 1, HasSubstr("lines.jinjax"));
  WriteFile(path, "a\n{% include 'b' %}");
  ExpectError(Chat("A\n", {"--chat-template", path}), 1,
              AllOf(HasSubstr("lines.jinja"), HasSubstr("line 2")));
  WriteFile(path, "{{ raise_exception('Roles must alternate') }}");
  ExpectError(Chat("A\n", {"--chat-template", path}), 1, HasSubstr("Roles must alternate"));
  unlink(path.c_str());
}

// The flags reach the template, which here says what the model is asked.
TEST(Chat, GivesTheTemplateToolsAndThinking) {
  const std::string path = ScratchPath("flags.jinja"), tools = ScratchPath("tools.json");
  const std::string name = ScratchPath("name.jinja");
  const std::string said = "{{ messages[-1].content }}\n";
  WriteFile(path,
            said + "{{ tools[0].function.name if tools else 'NURSE' }}{{ enable_thinking }}:\n");
  WriteFile(tools, R"([{"type": "function", "function": {"name": "ROMEO"}}])");
  const auto same = [&](std::vector<std::string> flags, const std::string& text) {
    WriteFile(name, said + text + "\n");
    flags.insert(flags.begin(), {"--chat-template", path});
    const ProgramResult result = Chat("x\n", flags);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.out, Chat("x\n", {"--chat-template", name}).out);
  };
  same({}, "NURSE:");
  same({"--think"}, "NURSETrue:");
  same({"--no-think", "--tools", tools}, "ROMEOFalse:");
  same({"--sandbox", "--tools", tools}, "ROMEO:");
  ExpectError(Chat("x\n", {"--tools", tools}), 1, HasSubstr("holds no chat template"));
  ExpectError(Chat("x\n", {"--think", "--chat-template", "none"}), 1, HasSubstr("--think"));
  ExpectError(Chat("x\n", {"--no-think", "--chat-template", "none"}), 1, HasSubstr("--no-think"));
  WriteFile(tools, "{}");
  ExpectError(Chat("x\n", {"--chat-template", path, "--tools", tools}), 1,
              HasSubstr("holds no JSON list"));
  WriteFile(tools, "{");
  ExpectError(Chat("x\n", {"--chat-template", path, "--tools", tools}), 1, HasSubstr("not JSON"));
  for (const std::string& file : {path, tools, name}) unlink(file.c_str());
}

TEST(Chat, KeepsAnswersToAShape) {
  const ProgramResult result = Chat("ROMEO:\nJULIET:\n/regen\n", {"--regex", "[a-z]{3,5}!"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, testing::MatchesRegex("([a-z]{3,5}!\n){3}"));
  const std::string path = ScratchPath("shape");
  WriteFile(path, "root ::= [0-9]{2}");
  EXPECT_THAT(Chat("ROMEO:\n", {"--grammar", "@" + path, "--sandbox"}).out,
              testing::MatchesRegex("[0-9]{2}\n"));
  ExpectError(Chat("A\n", {"--schema", "{\"not\": {}}"}), 1, HasSubstr("keyword 'not'"));
  ExpectError(Chat("A\n", {"--schema", "@no/such/file"}), 1, HasSubstr("'no/such/file'"));
  ExpectError(Chat("A\n", {"--schema", "{}", "--grammar", "x"}), 2, HasSubstr("excludes"));
  ExpectError(Chat("A\n", {"--schema", "{}", "--tools", path}), 2, HasSubstr("excludes"));
  unlink(path.c_str());
}

TEST(Chat, SaysWhenTheContextIsFull) {
  EXPECT_THAT(Chat("ROMEO:\n", {"-c", "15"}).err, HasSubstr("the context of 15 tokens is full"));
}

TEST(Chat, KeepsAChatInAFile) {
  const std::string path = ScratchPath("chat with spaces");
  const ProgramResult straight = Chat("ROMEO:\nJULIET:\n");
  const ProgramResult first = Chat("ROMEO:\n/save " + path + "\n");
  EXPECT_THAT(first.err, HasSubstr("saved 1 turn\n"));
  const ProgramResult second = Chat("/load " + path + "\nJULIET:\n/stats\n");
  EXPECT_THAT(second.err, AllOf(HasSubstr("after turn 1"), HasSubstr("turns: 2;")));
  EXPECT_EQ(first.out + second.out, straight.out);
  ExpectError(Chat("/save\n"), 1, HasSubstr("needs a file"));
  ExpectError(Chat("/load no/such/file\n"), 1, HasSubstr("no/such/file"));
  ExpectError(Chat("/load models/bard.gguf\n"), 1,
              HasSubstr("models/bard.gguf: it is not a saved chat"));
  EXPECT_THAT(second.err, HasSubstr("> ROMEO:\n" + first.out)) << "what it goes on from";
  ExpectError(Chat("/load " + path + "\n", {"-c", "9"}), 1, HasSubstr("limit here is 9 (-c)"));
  // What it replaces is said.
  const std::string replaced = Chat("/load " + path + "\n", {"--system", "Be brief."}).err;
  EXPECT_THAT(replaced, HasSubstr("it has no system prompt; that of the chat before is not used"));
  EXPECT_THAT(Chat("ROMEO:\n/save! " + path + "\n", {"--system", "A tragedy."}).err,
              HasSubstr("saved 1 turn"));
  EXPECT_THAT(Chat("/load " + path + "\n/system\n", {"--system", "Be brief."}).err,
              AllOf(HasSubstr("its system prompt replaces that of the chat before"),
                    HasSubstr("A tragedy.\n")));
  EXPECT_THAT(Chat("/load " + path + "\n").err, testing::Not(HasSubstr("replaces")));
}

// One conversation is never written in two formats.
TEST(Chat, WritesAChatThatIsLoadedInItsOwnFormat) {
  const std::string path = ScratchPath("chat"), lines = ScratchPath("lines.jinja");
  WriteFile(lines, "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}");
  const std::vector<std::string> other = {"--chat-template", lines};
  ASSERT_THAT(Chat("ROMEO:\n/save " + path + "\n").err, HasSubstr("saved 1 turn"));
  const ProgramResult result = Chat("/load " + path + "\nJULIET:\n/save! " + path + "\n", other);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("again, since it was written by another chat template"));
  EXPECT_THAT(ReadFile(path), HasSubstr("ROMEO:"));
  ExpectError(Chat("/load " + path + "\n", {"--exact"}), 1,
              HasSubstr("it was written by another chat template"));
  // In the format that it has now, it goes on where it was.
  EXPECT_THAT(Chat("/load " + path + "\n", other).err, testing::Not(HasSubstr("again")));
  for (const std::string& file : {path, lines}) unlink(file.c_str());
}

}  // namespace
}  // namespace inlay
