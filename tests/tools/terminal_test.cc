// What is different on a terminal: colour, a greeting, a prompt.
#include <gtest/gtest.h>

#include "tests/tools/program.h"

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
                                HasSubstr("'/sing' is no command"), HasSubstr("turns: 1;")));
}

}  // namespace
}  // namespace inlay
