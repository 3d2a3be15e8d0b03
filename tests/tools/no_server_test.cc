// A program without the server and without downloads: it has neither the commands nor their code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/tools/program.h"

namespace inlay {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

ProgramResult RunAlone(const std::vector<std::string>& arguments, const std::string& input = "") {
  return RunProgram(arguments, {.input = input, .program = INLAY_WITHOUT_SERVER});
}

TEST(NoServer, HasNoneOfItsCommands) {
  EXPECT_THAT(RunAlone({"--help"}).out, AllOf(HasSubstr("generate"), Not(HasSubstr("serve")),
                                              Not(HasSubstr("replay")), Not(HasSubstr("pull"))));
  ExpectError(RunAlone({"serve"}), 2, HasSubstr("'serve' is not one of the commands"));
  EXPECT_THAT(RunAlone({"chat", "--help"}).out, Not(HasSubstr("--server")));
  ExpectError(RunAlone({"chat", "--server", "http://127.0.0.1:1"}), 2,
              HasSubstr("unknown argument --server"));
  EXPECT_THAT(RunAlone({"generate", "--help"}).out, Not(HasSubstr("hf")));
  ExpectError(RunAlone({"generate", "-hf", "user/repo"}), 2,
              HasSubstr("-hf is an option of llama.cpp that inlay generate does not have"));
}

TEST(NoServer, ChatsAndGenerates) {
  EXPECT_EQ(RunAlone({"chat", "--temp", "0", "-n", "9"}, "ROMEO:\n").out,
            RunProgram({"chat", "--temp", "0", "-n", "9"}, {.input = "ROMEO:\n"}).out);
}

// Texts that a program with the server and pull has in it. (Both name Boost and libcurl: in
// NOTICE.)
TEST(NoServer, HasNoneOfItsCode) {
  const std::string program = ReadFile(INLAY_WITHOUT_SERVER);
  EXPECT_THAT(program, HasSubstr("the demo model models/bard.gguf is not near")) << "the search";
  const std::string whole = ReadFile(InlayProgram());
  for (const char* text : {"text/event-stream", "/v1/chat/completions", "boost::", "libcurl.so"}) {
    EXPECT_NE(whole.find(text), std::string::npos) << text;
    EXPECT_EQ(program.find(text), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace inlay
