// The command line itself: help, version, and what makes no sense.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "tests/tools/program.h"

namespace inlay {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

TEST(CommandLine, PrintsHelpAndVersion) {
  const ProgramResult help = RunProgram({"--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.out, AllOf(HasSubstr("generate"), HasSubstr("perplexity")));
  EXPECT_THAT(help.err, IsEmpty());
  const ProgramResult command_help = RunProgram({"generate", "--help"});
  EXPECT_EQ(command_help.status, 0);
  EXPECT_THAT(command_help.out, AllOf(HasSubstr("--top-k"), HasSubstr("INLAY_MODEL")));
  EXPECT_THAT(RunProgram({"--version"}).out,
              testing::MatchesRegex("inlay [0-9]+\\.[0-9]+\\.[0-9]+"
                                    "( \\(([0-9a-f]{12}(-dirty)?)?(, )?[A-Za-z]*\\))?\n"));
  EXPECT_EQ(RunProgram({"-v"}).out, RunProgram({"--version"}).out);
  EXPECT_EQ(RunProgram({"version"}).out, RunProgram({"--version"}).out);
  EXPECT_EQ(RunProgram({"help"}).out, help.out);
  EXPECT_EQ(RunProgram({"help", "generate"}).out, command_help.out);
  ExpectError(RunProgram({"help", "sing"}), 2, HasSubstr("'sing' is not one of the commands"));
}

size_t LongestLine(const std::string& text) {
  size_t longest = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n'))
    longest = std::max(longest, line.size());
  return longest;
}

TEST(CommandLine, HelpFitsAWindow) {
  std::vector<std::string> commands = {
      "generate", "chat",       "embed",      "logits",   "bench", "limits",   "tokenize",
      "template", "inspect",    "perplexity", "configs",  "synth", "quantize", "pack",
      "bundle",   "completion", "manual",     "licenses", "plan"};
  const ProgramResult all = RunProgram({"help"});
  EXPECT_LE(LongestLine(all.out), 80u) << all.out;
  for (const std::string& command : commands) {
    EXPECT_THAT(all.out, HasSubstr("\n  " + command + " "));
    const ProgramResult help = RunProgram({"help", command});
    EXPECT_THAT(help.out, HasSubstr("Usage: inlay " + command)) << command;
    EXPECT_THAT(help.out, testing::Not(HasSubstr("Excludes"))) << command;
    EXPECT_LE(LongestLine(help.out), 80u) << help.out;
  }
}

// As $COLUMNS says, or the terminal.
TEST(CommandLine, HelpUsesTheWidthThatThereIs) {
  const auto longest = [](const std::string& command, const std::string& columns) {
    return LongestLine(RunProgram({"help", command}, {.env = {{"COLUMNS", columns}}}).out);
  };
  const std::pair<const char*, size_t> kWidths[] = {{"", 80},   {"0", 80},  {"wide", 80}, {"1", 60},
                                                    {"72", 72}, {"90", 90}, {"1000", 100}};
  for (const auto& [columns, width] : kWidths) {
    for (const char* command : {"perplexity", "embed", "bench"}) {
      EXPECT_LE(longest(command, columns), width) << command << " at " << columns;
      EXPECT_GE(longest(command, columns), width - 4) << command << " at " << columns;
    }
  }
}

// The names of all manual pages, without ".1".
std::vector<std::string> Pages() {
  std::vector<std::string> names;
  for (const absl::string_view line :
       absl::StrSplit(RunProgram({"manual", "--list"}).out, '\n', absl::SkipEmpty()))
    names.emplace_back(absl::StripSuffix(line, ".1"));
  return names;
}

// A sentence goes on in the next line only where no more words fit.
TEST(CommandLine, HelpBreaksSentencesAtTheEndOfALineAlone) {
  for (const std::string& page : Pages()) {
    std::vector<std::string> arguments = {"help"};
    if (page != "inlay") arguments.emplace_back(absl::StripPrefix(page, "inlay-"));
    const std::string help = RunProgram(arguments, {.env = {{"COLUMNS", "100"}}}).out;
    const std::vector<std::string> lines = absl::StrSplit(help, '\n');
    for (size_t i = 1; i < lines.size(); ++i) {
      const std::string &line = lines[i - 1], &next = lines[i];
      if (line.empty() || line[0] == ' ' || next.empty() || !absl::ascii_islower(next[0])) continue;
      EXPECT_GT(line.size() + 1 + std::min(next.find(' '), next.size()), 100u)
          << page << ": " << line << "\n"
          << next;
    }
  }
}

// The columns of a line of roff as it is shown.
size_t ShownColumns(absl::string_view line) {
  size_t columns = 0;
  for (size_t i = 0; i < line.size(); ++columns)
    i += line[i] != '\\' ? 1 : line.substr(i, 2) == "\\(" ? 4 : 2;
  return columns;
}

TEST(CommandLine, ManualPagesBreakLongLines) {
  for (const std::string& page : Pages()) {
    bool as_it_is = false;
    for (const absl::string_view line : absl::StrSplit(RunProgram({"manual", page}).out, '\n')) {
      if (line == ".nf" || line == ".fi") as_it_is = line == ".nf";
      EXPECT_TRUE(!as_it_is || ShownColumns(line) <= 80) << page << ": " << line;
    }
  }
}

TEST(CommandLine, ManualPagesHaveTheExitStatusesOfTheirCommands) {
  const auto statuses = [](const char* page) {
    const std::string text = RunProgram({"manual", page}).out;
    std::vector<std::string> found;
    bool begins = false;
    for (const absl::string_view line :
         absl::StrSplit(text.substr(text.find(".SH \"EXIT STATUS\"")), '\n')) {
      if (begins) found.emplace_back(line);
      begins = line == ".TP";
    }
    return absl::StrJoin(found, " ");
  };
  EXPECT_EQ(statuses("inlay"), "0 1 2");
  EXPECT_EQ(statuses("inspect"), "0 1 2");
  EXPECT_EQ(statuses("generate"), "0 1 2 130");
  EXPECT_EQ(statuses("chat"), "0 1 2 130");
#ifdef INLAY_HAS_SERVER
  EXPECT_EQ(statuses("batch"), "0 1 2 3 130");
  EXPECT_EQ(statuses("replay"), "0 1 2 130");
  EXPECT_THAT(RunProgram({"manual", "replay"}).out, HasSubstr("\n1\nan error, in one sentence on "
                                                              "standard error; also if an answer"));
#endif
}

TEST(CommandLine, SaysWhatMakesNoSense) {
  ExpectError(RunProgram({}), 2, HasSubstr("a command is needed"));
  ExpectError(RunProgram({"sing"}), 2, HasSubstr("'sing' is not one of the commands generate"));
  ExpectError(RunProgram({"generate", "--sing"}), 2, HasSubstr("--sing"));
  ExpectError(RunProgram({"generate", "-p", "a", "-n", "many"}), 2, HasSubstr("'many'"));
  ExpectError(RunProgram({"generate", "-p", "a", "-n", "-2"}), 2, HasSubstr("from -1 to"));
  ExpectError(RunProgram({"generate", "-p", "a", "-n", "1.5"}), 2, HasSubstr("1.5"));
  ExpectError(RunProgram({"generate", "-p", "a", "--temp", "nan"}), 2, HasSubstr("from 0 to 100"));
  ExpectError(RunProgram({"generate", "-p", "a", "--top-p", "0"}), 2, HasSubstr("above 0"));
  ExpectError(RunProgram({"generate", "-p", "a", "--min-p", "1.1"}), 2, HasSubstr("'1.1'"));
  ExpectError(RunProgram({"generate", "-p", "a", "--repeat-penalty", "0"}), 2, HasSubstr("'0'"));
  ExpectError(RunProgram({"generate", "-p", "a", "-t", "0"}), 2, HasSubstr("from 1 to"));
  ExpectError(RunProgram({"generate", "-p", "a", "-t", "99999999999999999999"}), 2,
              HasSubstr("from 1 to"));
  ExpectError(RunProgram({"generate", "-p", "a", "-f", "b"}), 2, HasSubstr("excludes"));
  ExpectError(RunProgram({"generate", "-p", "a", "--cache-type", "q9"}), 2,
              HasSubstr("'q9' is not one of f32, f16, bf16"));
  ExpectError(RunProgram({"generate", "-p", "a", "-o", "xml"}), 2, HasSubstr("'xml'"));
  ExpectError(RunProgram({"generate", "-e", "-p", "\\q"}), 2, HasSubstr("-p: "));
  ExpectError(RunProgram({"logits"}), 2, HasSubstr("--tokens"));
  ExpectError(RunProgram({"logits", "--tokens", "1,two"}), 2, HasSubstr("two"));
  ExpectError(RunProgram({"logits", "--tokens", "9999999999"}), 2, HasSubstr("9999999999"));
  ExpectError(RunProgram({"perplexity"}), 2, HasSubstr("--file"));
  ExpectError(RunProgram({"perplexity", "-f", "a", "-c", "3"}), 2, HasSubstr("from 4 to"));
  ExpectError(RunProgram({"tokenize", "--decode", "--bos"}), 2, HasSubstr("--decode"));
}

// Empty values and elements were once taken for the default, for 0, or for nothing at all.
TEST(CommandLine, RefusesEmptyValues) {
  const std::string out = ScratchPath("out");
  const std::vector<std::vector<std::string>> commands = {
      {"generate", "-p", "a", "-m", ""},
      {"generate", "-p", "a", "--model="},
      {"generate", "-p", ""},
      {"generate", "-f", ""},
      {"generate", "-p", "a", "--session", ""},
      {"generate", "-p", "a", "--session=", "-n", "1"},
      {"generate", "-p", "a", "--session=", out},
      {"generate", "-p", "a", "--stop", ""},
      {"generate", "-p", "a", "-s", ""},
      {"generate", "-p", "a", "-n", ""},
      {"generate", "-p", "a", "-o", ""},
      {"chat", "--system", ""},
      {"chat", "--stop", ""},
      {"logits", "--tokens", ""},
      {"logits", "--tokens="},
      {"logits", "--tokens", "1,,2"},
      {"logits", "--tokens", "1,"},
      {"logits", "--tokens", ",1"},
      {"logits", "--tokens", ","},
      {"bench", "-t", ""},
      {"bench", "-t", "1,,2"},
      {"bench", "-d", "0,"},
      {"bench", "-b", ",1"},
      {"perplexity", "-f", ""},
      {"tokenize", ""},
      {"embed", ""},
      {"inspect", "-m", ""},
      {"synth", "", "-o", out},
      {"synth", "bard", "-o", ""},
      {"synth", "bard", "-o", out, "--type", ""},
      {"synth", "bard", "-o", out, "-s", ""},
      {"quantize", "", out, "Q8_0"},
      {"quantize", "models/bard.gguf", "", "Q8_0"},
      {"quantize", "models/bard.gguf", out, ""},
      {"pack", "", out},
      {"pack", "models/bard.gguf", ""},
      {"bundle", "", "-o", out},
      {"bundle", "models/bard.gguf", "-o", ""},
      {"bundle", "models/bard.gguf", "-o", out, "--binary", ""}};
  for (const std::vector<std::string>& arguments : commands) {
    SCOPED_TRACE(absl::StrJoin(arguments, " "));
    ExpectError(RunProgram(arguments), 2, AnyOf(HasSubstr("must not be empty"), HasSubstr("''")));
  }
  // What looks like an empty flag may be the value of another.
  EXPECT_EQ(RunProgram({"generate", "-p", "--model=", "-n", "1"}).status, 0);
  EXPECT_THAT(RunProgram({"generate", "-ep", "--prompt=", "-n", "1"}).out, StartsWith("--prompt="));
}

TEST(CommandLine, ReadsListsOfNumbers) {
  const auto tokens = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"logits", "--tokens"});
    return RunProgram(arguments).Json()["tokens"];
  };
  EXPECT_EQ(tokens({"2,17,43"}), nlohmann::json({2, 17, 43}));
  EXPECT_EQ(tokens({"2", "17,43"}), nlohmann::json({2, 17, 43}));
  ExpectError(RunProgram({"logits", "--tokens", "-1"}), 2, HasSubstr("--tokens: '-1' is not"));
  ExpectError(RunProgram({"bench", "-t", "1,1025"}), 2, HasSubstr("'1025' is not"));
}

TEST(CommandLine, NamesWhatIsWrongInSynthAndQuantize) {
  const std::string out = ScratchPath("out");
  ExpectError(RunProgram({"synth", "nosuch", "-o", out}), 2, HasSubstr("'nosuch'"));
  ExpectError(RunProgram({"synth", "bard", "-o", out, "--type", "Q9"}), 2, HasSubstr("'Q9'"));
  ExpectError(RunProgram({"synth", "bard", "-o", out, "-s", "-1"}), 2, HasSubstr("'-1'"));
  ExpectError(RunProgram({"chat", "-s", "-7"}), 2, HasSubstr("'-7' is not a whole number from 0"));
  ExpectError(RunProgram({"quantize", "no/such/file", out, "Q9"}), 2, HasSubstr("'Q9'"));
}

TEST(CommandLine, NamesShellsAndManualPages) {
  ExpectError(RunProgram({"completion", "tcsh"}), 2, HasSubstr("'tcsh' is not one of bash, zsh"));
  ExpectError(RunProgram({"manual", "sing"}), 2, HasSubstr("no manual page of 'sing'"));
  for (const char* name : {"inlay-chat.1", "inlay-chat"})
    EXPECT_EQ(RunProgram({"manual", name}).out, RunProgram({"manual", "chat"}).out) << name;
  for (const char* name : {"inlay.1", "inlay"})
    EXPECT_EQ(RunProgram({"manual", name}).out, RunProgram({"manual"}).out) << name;
}

// A value that is neither a file nor one of some words is no word.
TEST(CommandLine, CompletesTheWordsThatAValueCanBe) {
  const std::string script = RunProgram({"completion", "bash"}).out;
  EXPECT_THAT(script, HasSubstr("'plan --network') words='10gbe 100gbe-rdma shared-memory' ;;"));
  EXPECT_THAT(script, testing::Not(HasSubstr("NETWORK")));
}

TEST(CommandLine, HintsAtCommandsOfOtherNames) {
  ExpectError(RunProgram({"run", "x"}), 2,
              HasSubstr("'run' is not a command; did you mean inlay chat?"));
  ExpectError(RunProgram({"ls"}), 2, HasSubstr("inlay list?"));
  ExpectError(RunProgram({"show", "x"}), 2, HasSubstr("inlay inspect?"));
  ExpectError(RunProgram({"help", "run"}), 2, HasSubstr("inlay chat?"));
  ExpectError(RunProgram({kDemoModel}), 2,
              HasSubstr("is a model and not a command; inlay chat models/bard.gguf"));
  ExpectError(RunProgram({"sing"}), 2, HasSubstr("'sing' is not one of the commands"));
}

// CLI11 would read "-hf" as "-h" and print the help.
TEST(CommandLine, OptionsFollowACommand) {
  ExpectError(RunProgram({"-hf", "user/repo", "-p", "hi"}), 2,
              HasSubstr("-hf is an option, and options follow a command: inlay chat -hf ..., inlay "
                        "generate -hf ..."));
  for (const char* option : {"-m", "--model", "--model=b.gguf", "-p", "-ngl", "--prompt"})
    ExpectError(RunProgram({option, "b.gguf"}), 2, HasSubstr("options follow a command"));
  for (const char* word : {"-x", "--hlep", "-hx", "-", "--"}) {
    ExpectError(RunProgram({word}), 2,
                HasSubstr(absl::StrCat("unknown argument ", word, "; see inlay --help")));
  }
}

// As in llama.cpp.
TEST(CommandLine, TheLastOfSeveralValuesHolds) {
  const auto run = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"generate", "A", "--no-echo", "-s", "1"});
    const ProgramResult result = RunProgram(more);
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  };
  EXPECT_EQ(run({"-n", "9", "--temp", "2", "--predict", "3", "--temp", "0"}),
            run({"-n", "3", "--temp", "0"}));
  EXPECT_THAT(RunProgram({"chat", "--stop", "x", "--stop", "y", "-n", "1", "-n", "many"}).err,
              HasSubstr("'many'"));
}

TEST(CommandLine, NamesTheVariableOfAModelThatIsNotThere) {
  ExpectError(RunProgram({"inspect"}, {.env = {{"INLAY_MODEL", "no/such"}}}), 1,
              HasSubstr("INLAY_MODEL: no/such cannot be opened"));
}

TEST(CommandLine, SaysWhatQuantizeHasDone) {
  const std::string out = ScratchPath("out"), again = out + "2";
  const ProgramResult first = RunProgram({"quantize", kDemoModel, out, "Q4_K"});
  EXPECT_EQ(first.status, 0) << first.err;
  EXPECT_THAT(first.err, AllOf(testing::ContainsRegex(
                                   "models/bard.gguf: [0-9.]+ MB of weights are now [0-9.]+ "
                                   "MB\n"),
                               HasSubstr("what llama-quantize calls Q4_K is Q4_K_M here\n"),
                               testing::Not(HasSubstr("already"))));
  const ProgramResult second = RunProgram({"quantize", out, again, "Q8_0"});
  EXPECT_THAT(second.err, testing::ContainsRegex("the source is already [A-Z0-9_]+ in [0-9]+ "
                                                 "matrices"));
  unlink(out.c_str());
  unlink(again.c_str());
}

TEST(CommandLine, EchoesUnknownArgumentsInOrder) {
  ExpectError(RunProgram({"configs", "--one", "-o", "json", "--two", "three", "--four"}), 2,
              HasSubstr("unknown arguments --one --two three --four; see inlay configs --help"));
  ExpectError(
      RunProgram({"chat", "no/such", "more"}), 2,
      HasSubstr("unknown argument more; a chat reads its messages from standard input: echo "
                "more | inlay chat ..."));
  ExpectError(RunProgram({"chat", "no/such", "it's \x1b"}), 2,
              HasSubstr(R"(echo $'it\'s \u001b' | inlay chat ...)"));
  ExpectError(RunProgram({"quantize", "a", "b", "Q8_0", "8"}), 2,
              HasSubstr("unknown argument 8; -t 8 sets the number of threads"));
  // Not "--model excludes MODEL" for the value of an unknown flag.
  ExpectError(RunProgram({"bench", "-m", kDemoModel, "--foo", "bar"}), 2,
              HasSubstr("unknown argument --foo; see inlay bench --help"));
  ExpectError(RunProgram({"bench", "-m", kDemoModel, "bar"}), 2,
              HasSubstr("--model excludes MODEL, and 'bar' is the MODEL: give one of them"));
  for (const char* number : {"010", "08", "-010", "00"}) {
    ExpectError(RunProgram({"generate", "-p", "A", "--seed", number}), 2,
                HasSubstr("begins with a zero"));
  }
  for (const char* number : {"18446744073709551616", "99999999999999999999",
                             "-99999999999999999999", "-2", "1.5", "x"}) {
    ExpectError(RunProgram({"generate", "-p", "A", "--seed", number}), 2,
                AllOf(HasSubstr(absl::StrCat("'", number, "'")),
                      HasSubstr("from 0 to 18446744073709551615, nor -1")));
  }
  ExpectError(RunProgram({"serve", "--port", "018400"}), 2, HasSubstr("begins with a zero"));
  ExpectError(RunProgram({"generate", kDemoModel}), 2,
              HasSubstr("'models/bard.gguf' is a model, which -m names"));
}

// As in `inlay inspect | head -1`: killed by the signal as other programs are, without a word. The
// shell shows 141.
TEST(CommandLine, IsSilentWhereNobodyReads) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"generate", "-p", "A", "-n", "2"},
                                             {"inspect"},
                                             {"inspect", "-o", "json"},
                                             {"logits", "--tokens", "2"},
                                             {"configs"},
                                             {"--help"}}) {
    SCOPED_TRACE(arguments.front());
    const ProgramResult result = RunProgram(arguments, {.output_unread = true});
    EXPECT_EQ(result.status, 128 + SIGPIPE);
    EXPECT_THAT(result.err, IsEmpty());
  }
  const ProgramResult sandboxed = RunProgram({"inspect", "--sandbox"}, {.output_unread = true});
  EXPECT_EQ(sandboxed.status, 128 + SIGPIPE);
  // Whoever ignores the signal wants to be told.
  ExpectError(RunProgram({"configs"}, {.output_unread = true, .ignores_pipe_signal = true}), 1,
              HasSubstr("Broken pipe"));
}

// A message with a newline in it is still one line.
TEST(CommandLine, KeepsErrorsToOneLine) {
  ExpectError(RunProgram({"si\nng"}), 2, HasSubstr("'si ng'"));
  ExpectError(RunProgram({"generate", "-p", "a", "-m", "no\n\x1b[31mfile"}), 1,
              testing::Not(HasSubstr("\x1b")));
}

// mpirun with the wrong program computes everything as often as there are processes.
TEST(CommandLine, ProcessesOfMpiAreTold) {
  const auto with = [](const std::map<std::string, std::string>& variables) {
    return RunProgram({"tokenize"}, {.input = "To be", .env = variables});
  };
  const ProgramResult alone = with({});
  const auto run = [&](const std::string& rank, const std::string& size) {
    return with({{"OMPI_COMM_WORLD_RANK", rank}, {"OMPI_COMM_WORLD_SIZE", size}});
  };
  const ProgramResult first = run("0", "2");
  EXPECT_EQ(first.err,
            "inlay: each of the 2 processes does all of this work; with inlay-mpi tokenize they do "
            "it once, together\n");
  EXPECT_EQ(first.out, alone.out);
  EXPECT_EQ(with({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}).err, first.err);
  EXPECT_THAT(run("1", "2").err, IsEmpty()) << "the first tells it";
  EXPECT_THAT(run("0", "1").err, IsEmpty());
  EXPECT_THAT(run("", "two").err, IsEmpty());
}

TEST(CommandLine, ForcesTheInstructionSet) {
  const auto limits = RunProgram({"limits", "--no-measure", "-o", "json"}).Json();
  const auto& targets = limits["targets"];
  ASSERT_FALSE(targets["runnable"].empty());
  for (const std::string target : targets["runnable"]) {
    EXPECT_THAT(targets["compiled"], testing::Contains(target));
    const ProgramOptions forced{.env = {{"INLAY_TARGET", target}}};
    const auto told =
        RunProgram({"limits", "--no-measure", "-o", "json"}, forced).Json()["targets"];
    EXPECT_EQ(told["chosen"], target);
    EXPECT_EQ(told["forced"], target);
    EXPECT_EQ(RunProgram({"generate", "-p", "A", "-n", "1"}, forced).status, 0);
  }
  EXPECT_THAT(RunProgram({"limits", "--no-measure"}).out, HasSubstr(targets["chosen"]));
  EXPECT_EQ(targets["forced"], nullptr);
  for (const char* command : {"generate", "chat", "logits", "bench", "perplexity", "tokenize",
                              "embed", "inspect", "configs", "limits"}) {
    std::vector<std::string> arguments = {command};
    if (arguments[0] == "logits") arguments.insert(arguments.end(), {"--tokens", "2"});
    if (arguments[0] == "embed") arguments.push_back("A");
    if (arguments[0] == "perplexity") arguments.insert(arguments.end(), {"-f", "LICENSE"});
    ExpectError(RunProgram(arguments, {.env = {{"INLAY_TARGET", "Z80"}}}), 1,
                AllOf(HasSubstr("'Z80'"), HasSubstr(targets["runnable"].back())));
  }
}

TEST(CommandLine, ReportsOutputThatCannotBeWritten) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"generate", "-p", "A", "-n", "2"},
                                             {"generate", "-p", "A", "-n", "2", "-o", "json"},
                                             {"logits", "--tokens", "2,5"},
                                             {"perplexity", "-f", "tests/golden/demo/heldout.txt"},
                                             {"tokenize", "tests/golden/demo/heldout.txt"},
                                             {"inspect"},
                                             {"limits", "--no-measure"},
                                             {"configs"},
                                             {"--help"}}) {
    SCOPED_TRACE(arguments.front());
    ExpectError(RunProgram(arguments, {.output_path = "/dev/full"}), 1,
                HasSubstr("standard output"));
    ExpectError(RunProgram(arguments, {.output_closed = true}), 1, HasSubstr("standard output"));
  }
}

TEST(Limits, MeasuresTheMachine) {
  const auto measured = RunProgram({"limits", "-t", "1", "-o", "json"}).Json()["measured"];
  EXPECT_EQ(measured["threads"], 1);
  EXPECT_GT(measured["read_bytes_per_second"], 1e8);
  EXPECT_GT(measured["dot_ops_per_second"]["f32"], 1e8);
  EXPECT_GT(measured["dot_ops_per_second"]["int8"], 1e8);
  // One thread is all threads here, and is not measured twice.
  EXPECT_EQ(measured["read_bytes_per_second"], measured["read_bytes_per_second_1_thread"]);
  EXPECT_EQ(measured["dot_ops_per_second"], measured["dot_ops_per_second_1_thread"]);
}

// The peaks are those of the best instruction set, and say so where another one is in use.
TEST(Limits, NameTheInstructionSetOfThePeaks) {
  const auto targets = RunProgram({"limits", "--no-measure", "-o", "json"}).Json()["targets"];
  const std::string best = targets["runnable"].front(), worst = targets["runnable"].back();
  const ProgramOptions forced = {.env = {{"INLAY_TARGET", worst}}};
  EXPECT_EQ(
      RunProgram({"limits", "-t", "1", "-o", "json"}, forced).Json()["measured"]["dot_target"],
      best);
  EXPECT_THAT(RunProgram({"limits", "-t", "2"}, forced).out,
              AllOf(HasSubstr(worst + ", forced by INLAY_TARGET"),
                    testing::ContainsRegex("dot products, 1 thread .* by " + best + "\n"),
                    testing::ContainsRegex("dot products, 2 threads .* by " + best + "\n")));
}

TEST(Configs, ListsThemAll) {
  const auto configs = RunProgram({"configs", "-o", "json"}).Json();
  const nlohmann::json bard = {{"name", "bard"}, {"architecture", "bard"}, {"layers", 8}};
  EXPECT_THAT(configs, testing::Contains(bard));
  EXPECT_THAT(RunProgram({"configs"}).out, HasSubstr("bard"));
}

}  // namespace
}  // namespace inlay
