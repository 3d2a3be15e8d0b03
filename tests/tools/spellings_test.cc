// Models and prompts without a flag before them, and the options of llama.cpp's programs.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "tests/tools/program.h"
#include "tools/flags/llama_options.h"

namespace inlay {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string Generated(std::vector<std::string> more, const std::string& input = "") {
  more.insert(more.begin(), "generate");
  more.insert(more.end(), {"-s", "1"});
  const ProgramResult result = RunProgram(more, {.input = input});
  EXPECT_EQ(result.status, 0) << absl::StrJoin(more, " ") << ": " << result.err;
  return result.out;
}

TEST(Positional, IsThePromptOfGenerate) {
  const std::string expected = Generated({"-p", "To be", "-n", "4"});
  EXPECT_EQ(Generated({"To be", "-n", "4"}), expected);
  EXPECT_EQ(Generated({"-n", "4", "To be"}), expected);
  EXPECT_EQ(Generated({"-", "-n", "4"}, "To be"), expected);
  EXPECT_EQ(Generated({"-e", "To\\x20be", "-n", "4"}), expected);
  ExpectError(RunProgram({"generate", "To be", "-p", "A"}), 2, HasSubstr("excludes"));
  ExpectError(RunProgram({"generate", "To be", "-f", "LICENSE"}), 2, HasSubstr("excludes"));
  ExpectError(RunProgram({"generate", ""}), 2, HasSubstr("must not be empty"));
}

TEST(Positional, IsTheModelElsewhere) {
  EXPECT_EQ(RunProgram({"inspect", kDemoModel}).out, RunProgram({"inspect", "-m", kDemoModel}).out);
  EXPECT_EQ(RunProgram({"chat", kDemoModel, "-n", "4", "-s", "1"}, {.input = "A\n"}).out,
            RunProgram({"chat", "-m", kDemoModel, "-n", "4", "-s", "1"}, {.input = "A\n"}).out);
  for (const char* command : {"inspect", "chat", "bench", "serve", "template"}) {
    SCOPED_TRACE(command);
    ExpectError(RunProgram({command, "no/such"}), 1, HasSubstr("no/such"));
    ExpectError(RunProgram({command, "no/such", "-m", kDemoModel}), 2, HasSubstr("excludes"));
  }
  ExpectError(RunProgram({"perplexity", "no/such", "-f", "LICENSE"}), 1, HasSubstr("no/such"));
}

TEST(Spellings, OfTheSameMeaningAreTheSame) {
  const std::string expected = Generated({"To be", "-n", "4", "--temp", "0.5"});
  EXPECT_EQ(Generated({"To be", "--n-predict", "4", "--temperature", "0.5"}), expected);
  EXPECT_EQ(Generated({"To be", "--n-predict=4", "--temperature=0.5"}), expected);
  EXPECT_EQ(Generated({"To be", "-n", "4", "--no-display-prompt"}),
            Generated({"To be", "-n", "4", "--no-echo"}));
  const std::string grammar = ScratchPath("grammar"), schema = ScratchPath("schema");
  WriteFile(grammar, "root ::= [0-9]{2}");
  EXPECT_THAT(Generated({"To be", "--no-echo", "--grammar-file", grammar}),
              testing::MatchesRegex("[0-9]{2}\n"));
  WriteFile(schema, "{\"const\": \"King\"}");
  EXPECT_EQ(Generated({"To be", "--no-echo", "-jf", schema}), "\"King\"\n");
  EXPECT_EQ(Generated({"To be", "--no-echo", "-j", "{\"const\": \"King\"}"}), "\"King\"\n");
  unlink(grammar.c_str());
  unlink(schema.c_str());
  // llama.cpp reads underscores as hyphens.
  EXPECT_EQ(Generated({"To be", "-n", "4", "--top_k", "3", "--repeat_penalty=1.5", "--ctx_size",
                       "64", "--n_predict", "4"}),
            Generated({"To be", "-n", "4", "--top-k", "3", "--repeat-penalty", "1.5", "-c", "64"}));
  EXPECT_THAT(Generated({"-n", "1", "-p", "--top_k"}), testing::StartsWith("--top_k"));
  ExpectError(RunProgram({"generate", "A", "--no_such"}), 2,
              HasSubstr("unknown argument --no_such"));
  ExpectError(RunProgram({"generate", "A", "--n-predict", "many"}), 2, HasSubstr("'many'"));
  ExpectError(RunProgram({"generate", "A", "--n-predict"}), 2, HasSubstr("--n-predict needs"));
}

// What changes nothing is said, and all else is as without it.
TEST(Spellings, WithoutEffectAreSaidInOneLine) {
  const std::vector<std::string> plain = {"generate", "To be", "-n", "4", "-s", "1"};
  const std::string expected = RunProgram(plain).out;
  for (const std::vector<std::string>& option :
       std::vector<std::vector<std::string>>{{"-ngl", "99"},
                                             {"--n-gpu-layers", "99"},
                                             {"--gpu-layers=99"},
                                             {"-fa"},
                                             {"-fa", "on"},
                                             {"--flash-attn", "auto"},
                                             {"--no-mmap"},
                                             {"--mlock"},
                                             {"-b", "512"},
                                             {"-ub", "512"},
                                             {"-tb", "4"},
                                             {"--no-warmup"},
                                             {"-no-cnv"},
                                             {"--jinja"},
                                             {"--draft-p-min", "0.5"},
                                             {"-td", "4"},
                                             {"-v"},
                                             {"--no-perf"},
                                             {"--numa", "isolate"}}) {
    SCOPED_TRACE(absl::StrJoin(option, " "));
    std::vector<std::string> arguments = plain;
    arguments.insert(arguments.begin() + 1, option.begin(), option.end());
    const ProgramResult result = RunProgram(arguments);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.out, expected);
    EXPECT_THAT(result.err, HasSubstr(" has no effect: "));
    EXPECT_EQ(result.err.find("inlay: " + option[0].substr(0, option[0].find('='))), 0u)
        << result.err;
  }
}

TEST(Spellings, WithoutEffectSayWhatIsSo) {
  const auto note = [](const std::vector<std::string>& option) {
    std::vector<std::string> arguments = {"generate", "To be", "-n", "1"};
    arguments.insert(arguments.end(), option.begin(), option.end());
    return RunProgram(arguments).err;
  };
  EXPECT_THAT(note({"--no-mmap"}), HasSubstr("a GGUF file are copied into memory"));
  EXPECT_THAT(note({"--mlock"}), HasSubstr("no memory is locked"));
  EXPECT_THAT(note({"--log-file", "log"}), HasSubstr("inlay serve has --access-log"));
}

TEST(Spellings, OfAnotherMeaningAreRefusedWithAHint) {
  const auto refused = [](const std::vector<std::string>& arguments, const std::string& hint) {
    ExpectError(RunProgram(arguments), 2, AllOf(HasSubstr(" is not available: "), HasSubstr(hint)));
  };
  refused({"generate", "A", "-ctk", "q8_0"}, "--cache-type sets the row type of both");
  refused({"generate", "A", "-ctk", "q8_0", "-ctv", "f32"}, "q8 and f32");
  refused({"generate", "A", "-ctk", "q4_0", "-ctv", "q4_0"}, "--cache-type q8");
  refused({"generate", "A", "-sys", "Be brief."}, "inlay chat");
  refused({"generate", "A", "-hff", "a.gguf"}, "USER/REPO:FILE");
  refused({"generate", "A", "--top-n-sigma", "1"}, "--min-p");
  refused({"generate", "A", "-cnv"}, "inlay chat");
  refused({"generate", "A", "--mirostat", "2"}, "--min-p");
  refused({"generate", "A", "--lora", "x"}, "merge");
  refused({"generate", "A", "-r", "User:"}, "--stop");
  refused({"generate", "A", "-sp"}, "--special reads those of a prompt");
  refused({"chat", "-sp"}, "are not printed");
  refused({"generate", "A", "--prompt-cache", "x"}, "--session");
  refused({"chat", "--context-shift"}, "--on-full trim");
  refused({"chat", "-no-cnv"}, "inlay generate");
  refused({"chat", "-p", "Hello"}, "--system");
  refused({"tokenize", "-p", "Hello"}, "standard input");
  refused({"quantize", "a", "b", "Q4_K_M", "--imatrix", "x"}, "importance matrix");
  refused({"quantize", "--pure", "a", "b", "Q4_K_M"}, "Q4_K");
  refused({"quantize", "--leave-output-tensor", "a", "b", "Q4_K_M"}, "Q6_K");
}

TEST(Spellings, OfTwoRowTypesThatAreOneAreTaken) {
  const std::string expected = Generated({"To be", "-n", "4", "--cache-type", "q8"});
  EXPECT_EQ(Generated({"To be", "-n", "4", "-ctk", "q8_0", "-ctv", "q8_0"}), expected);
  EXPECT_EQ(Generated({"To be", "-n", "4", "--cache-type-k=q8_0", "--cache-type-v=q8_0"}),
            expected);
  EXPECT_EQ(Generated({"To be", "-n", "4", "--cache-type", "q8_0"}), expected);
  EXPECT_EQ(Generated({"To be", "-n", "4", "-ctk", "f16"}),
            Generated({"To be", "-n", "4", "--cache-type", "f16"}));
}

// Not "-c ram" or "-h -f f", as CLI11 would have it.
TEST(Spellings, ThatAreUnknownAreNotTakenApart) {
  for (const char* option : {"-cxy", "-fxy", "-hxy", "-pxy", "-mmodel.gguf"}) {
    ExpectError(
        RunProgram({"generate", "A", option, "1"}), 2,
        HasSubstr(std::string("unknown argument ") + option + "; see inlay generate --help"));
  }
  const std::string expected = Generated({"To be", "-n", "4", "-c", "64"});
  EXPECT_EQ(Generated({"To be", "-n4", "-c64"}), expected);
  EXPECT_EQ(Generated({"-n4", "-ep", "To be"}), Generated({"-n", "4", "-e", "-p", "To be"}));
  EXPECT_THAT(RunProgram({"generate", "A", "-n-2"}).err, HasSubstr("'-2'"));
}

TEST(Spellings, OfLlamaThatInlayHasNotAreNamedAsSuch) {
  for (const char* option :
       {"--hellaswag", "-ptc", "--lookup-cache-static", "-gan", "--control-vector"}) {
    ExpectError(RunProgram({"generate", "A", option, "1"}), 2,
                HasSubstr(std::string(option) +
                          " is an option of llama.cpp that inlay generate does not have"));
  }
  ExpectError(RunProgram({"generate", "A", "--no-such-option"}), 2,
              HasSubstr("unknown argument --no-such-option"));
  const auto names = LlamaOptions();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end())) << "they are searched in this order";
  EXPECT_TRUE(std::adjacent_find(names.begin(), names.end()) == names.end());
  EXPECT_TRUE(IsLlamaOption("--mirostat"));
  EXPECT_FALSE(IsLlamaOption("--cache-type"));
}

// The words of values and of commands without a model mean what they say.
TEST(Spellings, LeaveOtherWordsAlone) {
  EXPECT_EQ(Generated({"-n", "1", "-p", "-ngl", "--no-echo"}).find("no effect"), std::string::npos);
  EXPECT_THAT(Generated({"-n", "1", "-p", "-ngl"}), testing::StartsWith("-ngl"));
  EXPECT_THAT(RunProgram({"generate", "-n", "1", "--", "-ngl"}).out, testing::StartsWith("-ngl"));
  EXPECT_THAT(Generated({"-n", "1", "-ep", "--jinja"}), testing::StartsWith("--jinja"));
  ExpectError(RunProgram({"configs", "-ngl", "99"}), 2, HasSubstr("unknown argument"));
  // The command's own option of that name.
  EXPECT_THAT(RunProgram({"bench", "-b", "0"}).err, HasSubstr("'0'"));
}

}  // namespace
}  // namespace inlay
