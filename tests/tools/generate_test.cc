// inlay generate.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "io/file/file_lock.h"
#include "tests/tools/program.h"

namespace inlay {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr char kPrompt[] = "ROMEO:\n";

TEST(Generate, ContinuesThePromptAndTellsTheTime) {
  const ProgramResult result = RunProgram({"generate", "-p", kPrompt, "-n", "30", "-s", "7"});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.out, StartsWith(kPrompt));
  EXPECT_GT(result.out.size(), sizeof(kPrompt) + 30);
  EXPECT_EQ(result.out.back(), '\n');
  EXPECT_THAT(result.err, AllOf(HasSubstr("30 tokens"), HasSubstr("tokens/s"), HasSubstr("seed 7"),
                                HasSubstr("length"), Not(HasSubstr("\033"))));
}

TEST(Generate, PrintsJson) {
  const ProgramResult text = RunProgram({"generate", "-p", kPrompt, "-n", "30", "-s", "7"});
  const ProgramResult result =
      RunProgram({"generate", "-p", kPrompt, "-n", "30", "-s", "7", "-o", "json"});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.err, IsEmpty());
  const auto json = result.Json();
  EXPECT_EQ(json["prompt"], kPrompt);
  EXPECT_EQ(kPrompt + json["text"].get<std::string>() + "\n", text.out);
  EXPECT_EQ(json["tokens"].size(), 30u);
  EXPECT_EQ(json["stop_reason"], "length");
  EXPECT_EQ(json["seed"], 7);
  EXPECT_EQ(json["timings"]["prompt_tokens"], 4);
  EXPECT_EQ(json["timings"]["generated_tokens"], 30);
  EXPECT_GT(json["timings"]["generated_tokens_per_second"], 0);
}

TEST(Generate, ReadsThePromptFromAnywhere) {
  const auto run = [](std::vector<std::string> from, const std::string& input) {
    std::vector<std::string> arguments = {"generate", "-n", "8", "-s", "1"};
    arguments.insert(arguments.end(), from.begin(), from.end());
    const ProgramResult result = RunProgram(arguments, {.input = input});
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  };
  const std::string expected = run({"-p", kPrompt}, "");
  const std::string path = ScratchPath("prompt");
  WriteFile(path, kPrompt);
  EXPECT_EQ(run({"-f", path}, ""), expected);
  EXPECT_EQ(run({"-f", "-"}, kPrompt), expected);
  EXPECT_EQ(run({}, kPrompt), expected);
  EXPECT_EQ(run({"-e", "-p", "ROMEO:\\n"}, ""), expected);
  EXPECT_EQ(kPrompt + run({"--no-echo", "-p", kPrompt}, ""), expected);
  unlink(path.c_str());
}

std::string Text(std::vector<std::string> more) {
  more.insert(more.begin(), {"generate", "-p", kPrompt, "-n", "40", "--no-echo"});
  const ProgramResult result = RunProgram(more);
  EXPECT_EQ(result.status, 0) << result.err;
  return result.out;
}

TEST(Generate, DependsOnTheSeedAlone) {
  const std::string one = Text({"-s", "1"});
  EXPECT_EQ(Text({"-s", "1", "-t", "1"}), Text({"-s", "1", "-t", "3"}));
  EXPECT_NE(one, Text({"-s", "2"}));
  // Every seed that a server's reply may name.
  EXPECT_EQ(
      RunProgram({"generate", "-p", "A", "-n", "1", "-s", "18446744073709551615", "-o", "json"})
          .Json()["seed"],
      18446744073709551615u);
  // Without a seed the texts differ; of five, all being equal has no chance.
  std::set<std::string> texts;
  for (int i = 0; i < 5; ++i) texts.insert(Text({}));
  EXPECT_GT(texts.size(), 1u);
}

TEST(Generate, TakesSamplingFlags) {
  const std::string greedy = Text({"--temp", "0"});
  EXPECT_EQ(greedy, Text({"--temp", "0", "-s", "5"}));
  EXPECT_EQ(greedy, Text({"--top-k", "1"}));
  EXPECT_EQ(greedy, Text({"--top-p", "1e-6"}));
  EXPECT_EQ(greedy, Text({"--min-p", "1"}));
  EXPECT_NE(greedy, Text({"--temp", "0", "--repeat-penalty", "2"}));
  EXPECT_EQ(greedy, Text({"--temp", "0", "--repeat-penalty", "2", "--repeat-last-n", "0"}));
  EXPECT_EQ(Text({"--temp", "0", "--repeat-penalty", "2", "--repeat-last-n", "-1"}),
            Text({"--temp", "0", "--repeat-penalty", "2", "--repeat-last-n", "9999"}));
  EXPECT_EQ(Text({"--seed", "3", "--top-k", "-1"}), Text({"--seed", "3", "--top-k", "0"}));
}

TEST(Generate, StopsAtAText) {
  const std::string all = Text({"--temp", "0"});
  const std::string stop = all.substr(all.size() / 2, 3);
  const auto json = RunProgram({"generate", "-p", kPrompt, "-n", "40", "--temp", "0", "-o", "json",
                                "--stop", "no such text", "--stop", stop})
                        .Json();
  EXPECT_EQ(json["stop_reason"], "stop");
  EXPECT_EQ(json["text"], all.substr(0, all.find(stop)));
}

TEST(Generate, TakesAnyBytes) {
  const ProgramResult text =
      RunProgram({"generate", "-f", "-", "-n", "5"}, {.input = "\xff\xfe\0A"});
  EXPECT_EQ(text.status, 0) << text.err;
  const ProgramResult json =
      RunProgram({"generate", "-f", "-", "-n", "5", "-o", "json"}, {.input = "\xff\xc3"});
  EXPECT_EQ(json.Json()["prompt"], "\uFFFD\uFFFD");
}

TEST(Generate, RefusesAnEmptyOrOverlongPrompt) {
  ExpectError(RunProgram({"generate"}), 1, HasSubstr("prompt is empty"));
  const ProgramResult overlong = RunProgram({"generate", "-p", kPrompt, "-c", "3"});
  ExpectError(overlong, 1,
              AllOf(HasSubstr("4 tokens"), HasSubstr("context of 3"), HasSubstr("prompt")));
  EXPECT_THAT(overlong.out, IsEmpty());
  // Of an endless one no more is read than it takes to see that.
  const ProgramResult endless = RunProgram({"generate", "-f", "/dev/zero", "-c", "100"});
  ExpectError(
      endless, 1,
      AllOf(HasSubstr("at least 101 tokens"), HasSubstr("only 100 tokens of the context of 100")));
  EXPECT_THAT(endless.out, IsEmpty());
  ExpectError(RunProgram({"generate", "-f", "no/such/file"}), 1, HasSubstr("'no/such/file'"));
  ExpectError(RunProgram({"generate", "-f", "/"}), 1, HasSubstr("directory"));
}

TEST(Generate, RefusesAnOverlongPromptBeforeItIsRead) {
  const std::string path = ScratchPath("prompt");
  std::string text;
  while (text.size() < 4000) text += "To be, or not to be. ";
  WriteFile(path, text);
  const ProgramResult small = RunProgram({"generate", "-f", path, "-c", "100"});
  ExpectError(small, 1, HasSubstr("only 100 tokens of the context of 100 are left"));
  std::filesystem::resize_file(path, 220'000'000);  // with zeros that take no room
  const ProgramResult large = RunProgram({"generate", "-f", path, "-c", "100"});
  ExpectError(large, 1, HasSubstr("only 100 tokens of the context of 100 are left"));
  EXPECT_LT(large.peak_bytes, small.peak_bytes + (size_t{8} << 20));
  unlink(path.c_str());
}

TEST(Generate, EndsWhereTheContextEnds) {
  const auto json =
      RunProgram({"generate", "-p", kPrompt, "-c", "20", "-n", "-1", "--ignore-eos", "-o", "json"})
          .Json();
  EXPECT_EQ(json["stop_reason"], "context");
  EXPECT_EQ(json["tokens"].size(), 16u);
}

TEST(Generate, GoesOnFromASession) {
  const std::string path = ScratchPath("session");
  std::filesystem::remove(path);  // what an interrupted run left
  const auto run = [&](const char* prompt, std::vector<std::string> more = {}) {
    more.insert(more.begin(),
                {"generate", "-p", prompt, "-n", "20", "-o", "json", "--session", path});
    return RunProgram(more);
  };
  const auto first = run(kPrompt, {"--temp", "0"}).Json();
  EXPECT_EQ(first["timings"]["prompt_tokens"], 4);
  const std::string kept = ReadFile(path);
  const auto second = run("JULIET:\n", {"--temp", "0"}).Json();
  EXPECT_LT(second["timings"]["prompt_tokens"], 10) << "nothing but what is new is computed";
  EXPECT_GT(ReadFile(path).size(), kept.size());
  WriteFile(path, kept);
  EXPECT_EQ(run("JULIET:\n", {"--temp", "0"}).Json()["tokens"], second["tokens"]);

  // What is refused leaves the file as it is.
  WriteFile(path, kept);
  ExpectError(run(kPrompt, {"--cache-type", "bf16", "--exact"}), 1,
              AllOf(HasSubstr(path), HasSubstr("its rows are f16, not bf16")));
  ExpectError(run(kPrompt, {"-c", "10"}), 1, HasSubstr("limit here is 10"));
  EXPECT_EQ(ReadFile(path), kept);
  WriteFile(path, kept.substr(0, kept.size() - 1));
  ExpectError(run(kPrompt), 1, HasSubstr(path));

  // Computed again in one line where that is allowed, and the same from then on.
  WriteFile(path, kept);
  const ProgramResult again = run("JULIET:\n", {"--temp", "0", "--cache-type", "bf16"});
  EXPECT_EQ(again.status, 0);
  EXPECT_EQ(again.err, absl::StrCat(path,
                                    ": computing its 24 tokens again, since its rows are f16, "
                                    "not bf16\n"));
  EXPECT_EQ(run("NURSE:\n", {"--cache-type", "bf16", "--exact"}).err, "");
  WriteFile(path, "");
  ExpectError(run(kPrompt), 1, HasSubstr(path));
  ExpectError(RunProgram({"generate", "-p", "x", "-n", "1", "--session", "/no/such/folder/file"}),
              1, HasSubstr("/no/such/folder/file"));
}

// Without text a session goes on where it ended, with the same tokens as if it had not.
TEST(Generate, GoesOnWithoutNewText) {
  const std::string path = ScratchPath("session");
  const auto generate = [&](const char* tokens, std::vector<std::string> more) {
    more.insert(more.begin(), {"generate", "-n", tokens, "-s", "3", "-o", "json"});
    return RunProgram(more);
  };
  const auto whole = generate("20", {"-p", kPrompt}).Json();
  const auto first = generate("8", {"-p", kPrompt, "--session", path}).Json();
  const auto second = generate("12", {"--session", path}).Json();
  EXPECT_EQ(first["text"].get<std::string>() + second["text"].get<std::string>(),
            whole["text"].get<std::string>());
  EXPECT_EQ(second["prompt"], "");
  EXPECT_THAT(RunOnTerminal({"generate", "--session", path, "-n", "2"}, "", {}).out,
              HasSubstr("2 tokens"));
  unlink(path.c_str());
  ExpectError(generate("8", {"--session", path}), 1, HasSubstr("has no text yet"));
  EXPECT_FALSE(std::filesystem::exists(path));
}

// Before the model is loaded, let alone asked.
TEST(Generate, NoticesASessionThatCannotBeWritten) {
  const std::string other = ScratchPath("other");
  WriteFile(other, "not a session");
  for (const std::string& path :
       {other, std::string("/no/such/folder/file"), std::string("models")}) {
    const ProgramResult result =
        RunProgram({"generate", "A", "-n", "1", "--session", path, "-m", "no/such/model"});
    ExpectError(result, 1, AllOf(HasSubstr(path), Not(HasSubstr("no/such/model"))));
    EXPECT_THAT(result.out, IsEmpty());
  }
  unlink(other.c_str());
}

TEST(Generate, KeepsSessionsInAStore) {
  const std::string folder = ScratchPath("store"), path = ScratchPath("session");
  std::filesystem::create_directory(folder);
  const auto run = [&](const std::string& prompt, std::vector<std::string> more) {
    more.insert(more.begin(), {"generate", prompt, "-n", "8", "-s", "3"});
    const ProgramResult result = RunProgram(more);
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  };
  for (const char* prompt : {kPrompt, "JULIET:\n"}) {
    EXPECT_EQ(run(prompt, {"--session", "play", "--store", folder}),
              run(prompt, {"--session", path}));
  }
  EXPECT_TRUE(std::filesystem::exists(folder + "/play.state"));
  EXPECT_FALSE(std::filesystem::exists(folder + "/play.lock"));
  ExpectError(RunProgram({"generate", "A", "--store", folder}), 2, HasSubstr("--session NAME"));
  ExpectError(RunProgram({"generate", "A", "--store", folder, "--session", "a/b"}), 2,
              HasSubstr("--session: "));
  ExpectError(RunProgram({"generate", "A", "--store", "no/such", "--session", "a"}), 2,
              HasSubstr("--store no/such is no existing folder"));
  // A mistyped scheme must not put the password on the screen.
  const ProgramResult other =
      RunProgram({"generate", "-p", "A", "--session", "s", "--store", "rediss://user:secret@host"});
  EXPECT_THAT(other.err, AllOf(HasSubstr("no other scheme"), Not(HasSubstr("secret"))));
  ExpectError(RunProgram({"generate", "A", "--store", "redis://127.0.0.1:1", "--session", "a"}), 1,
              HasSubstr("--store"));
  // One at a time, also in a folder with the name of an address.
  std::filesystem::create_directories(folder + "/a:/b");
  const auto lock = FileLock::Acquire(folder + "/a://b/play");
  ASSERT_TRUE(lock.ok()) << lock.status();
  ExpectError(RunProgram({"generate", "A", "--store", folder + "/a://b", "--session", "play"}), 1,
              HasSubstr("in use by another"));
  std::filesystem::remove_all(folder);
  unlink(path.c_str());
}

TEST(Generate, WarnsOfAContextBeyondTheTrainedLength) {
  const auto warning = HasSubstr("is beyond the 2048 tokens that the model was trained for");
  EXPECT_THAT(RunProgram({"generate", "A", "-n", "1", "-c", "2049"}).err, warning);
  EXPECT_THAT(RunProgram({"generate", "A", "-n", "1", "-c", "2048"}).err, Not(warning));
  EXPECT_THAT(RunProgram({"chat", "-n", "1", "-c", "4096"}).err, warning);
}

// The lines of -o jsonl.
std::vector<nlohmann::json> Lines(const ProgramResult& result) {
  EXPECT_EQ(result.status, 0) << result.err;
  std::vector<nlohmann::json> lines;
  std::istringstream text(result.out);
  for (std::string line; std::getline(text, line);) {
    lines.push_back(nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false));
    EXPECT_FALSE(lines.back().is_discarded()) << line;
  }
  return lines;
}

TEST(Generate, StreamsTokensAsLines) {
  const auto generate = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"generate", "-p", kPrompt, "-n", "30", "-s", "7"});
    return RunProgram(more);
  };
  const auto json = generate({"-o", "json", "--logprobs", "2"}).Json();
  const auto lines = Lines(generate({"-o", "jsonl", "--logprobs", "2"}));
  ASSERT_EQ(lines.size(), 31u);
  std::string text;
  for (size_t i = 0; i < 30; ++i) {
    EXPECT_EQ(lines[i]["id"], json["tokens"][i]);
    EXPECT_EQ(lines[i], json["logprobs"][i]);
    EXPECT_LE(lines[i]["logprob"], 0.0);
    ASSERT_EQ(lines[i]["top"].size(), 2u);
    EXPECT_GE(lines[i]["top"][0]["logprob"], lines[i]["logprob"]);
    text += lines[i]["text"];
  }
  EXPECT_EQ(text, json["text"].get<std::string>());
  EXPECT_EQ(lines[30]["text"], json["text"]);
  EXPECT_EQ(lines[30]["stop_reason"], "length");
  EXPECT_EQ(lines[30]["tokens"], json["tokens"]);
  // Several tokens of a step are lines of their own.
  const auto drafted = Lines(generate({"-o", "jsonl", "--logprobs", "2", "--draft", "4"}));
  EXPECT_EQ(std::vector(drafted.begin(), drafted.end() - 1),
            std::vector(lines.begin(), lines.end() - 1));
  // The probability of the token alone is always there.
  const auto plain = Lines(generate({"-o", "jsonl"}));
  EXPECT_EQ(plain[0]["logprob"], lines[0]["logprob"]);
  EXPECT_FALSE(plain[0].contains("top"));
  EXPECT_FALSE(generate({"-o", "json"}).Json().contains("logprobs"));
  ExpectError(generate({"--logprobs", "2"}), 2, HasSubstr("-o json"));
  ExpectError(generate({"-o", "jsonl", "--logprobs", "-1"}), 2, HasSubstr("from 0 to 100"));
}

// Two programs go on from one conversation, which exists or not yet: the second is refused before
// it has answered, and the first one's answer is kept.
TEST(Generate, OneAtATimeGoesOnFromASession) {
  const std::string path = ScratchPath("session"), pipe = ScratchPath("pipe");
  const auto generate = [&](std::vector<std::string> more) {
    more.insert(more.begin(),
                {"generate", "-p", kPrompt, "-s", "1", "-c", "100000", "--session", path});
    return more;
  };
  // The first fills a pipe and waits there until `signal` ends it, or only its answer.
  const auto run_both = [&](int signal) {
    std::filesystem::remove(pipe);
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    const ProgramResult first = RunProgram(
        generate({"-n", "-1", "--ignore-eos"}),
        {.output_path = pipe, .while_running = [&](pid_t pid) {
           const int text = open(pipe.c_str(), O_RDONLY);
           fcntl(text, F_SETPIPE_SZ, 4096);
           char bytes[4096];
           EXPECT_EQ(read(text, bytes, 1), 1);  // it has the session
           const ProgramResult refused = RunProgram(generate({"-n", "5"}));
           ExpectError(refused, 1, AllOf(HasSubstr(path), HasSubstr("in use by another")));
           EXPECT_EQ(refused.out, "");
           kill(pid, signal);
           while (read(text, bytes, sizeof(bytes)) > 0) {
           }
           close(text);
         }});
    EXPECT_EQ(first.status, 128 + signal) << first.err;
    // SIGKILL leaves the file, but not the lock.
    if (signal != SIGKILL) {
      EXPECT_FALSE(std::filesystem::exists(path + ".lock"));
    }
  };
  for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
    SCOPED_TRACE(signal);
    std::filesystem::remove(path);
    run_both(signal);
    EXPECT_EQ(std::filesystem::exists(path), signal == SIGINT);
    EXPECT_EQ(RunProgram(generate({"-n", "5"})).status, 0);
    const std::string before = ReadFile(path);
    run_both(signal);
    EXPECT_EQ(ReadFile(path) != before, signal == SIGINT);
    EXPECT_EQ(RunProgram(generate({"-n", "5"})).status, 0);
    EXPECT_FALSE(std::filesystem::exists(path + ".lock"));
  }
  std::filesystem::remove(path);
  std::filesystem::remove(pipe);
}

// The answer to a short prompt, by these flags.
nlohmann::json Shaped(std::vector<std::string> more) {
  more.insert(more.begin(), {"generate", "-p", kPrompt, "-o", "json"});
  const ProgramResult result = RunProgram(more);
  EXPECT_EQ(result.status, 0) << result.err;
  return result.Json();
}

TEST(Generate, KeepsAnswersToAShape) {
  const std::string file = ScratchPath("shape");
  WriteFile(file, "root ::= \"yes\" | \"no, \" [a-c]{3}\n");
  for (const char* seed : {"1", "2", "3"}) {
    const auto regex = Shaped({"--regex", "Act [IVX]{1,4}, scene [0-9]{1,3}[.]", "-s", seed});
    EXPECT_EQ(regex["stop_reason"], "end");
    EXPECT_THAT(regex["text"].get<std::string>(),
                testing::MatchesRegex("Act [IVX]{1,4}, scene [0-9]{1,3}[.]"));
    const auto grammar = Shaped({"--grammar", "@" + file, "-s", seed});
    EXPECT_EQ(grammar["stop_reason"], "end");
    EXPECT_THAT(grammar["text"].get<std::string>(), testing::MatchesRegex("yes|no, [a-c]{3}"));
  }
  // A grammar on the command line is the same; so is a schema, which has another name, too.
  EXPECT_EQ(Shaped({"--grammar", ReadFile(file), "-s", "4"})["text"],
            Shaped({"--grammar", "@" + file, "-s", "4"})["text"]);
  const std::string schema = R"({"type": "array", "items": {"type": "integer", "maximum": 9},)"
                             R"( "minItems": 2, "maxItems": 3})";
  WriteFile(file, schema);
  size_t complete = 0;
  for (const char* seed : {"1", "2", "3", "4"}) {
    const auto answer = Shaped({"--schema", "@" + file, "-s", seed});
    EXPECT_EQ(answer["text"], Shaped({"--json-schema", schema, "-s", seed})["text"]);
    if (answer["stop_reason"] != "end") continue;
    ++complete;
    const auto list = nlohmann::json::parse(answer["text"].get<std::string>(), nullptr, false);
    ASSERT_TRUE(list.is_array()) << answer["text"];
    EXPECT_TRUE(list.size() == 2 || list.size() == 3) << list;
    for (const auto& item : list) EXPECT_TRUE(item.is_number() && item <= 9) << list;
  }
  EXPECT_GT(complete, 0u);
}

TEST(Generate, CountsTokensThatAShapeForces) {
  const auto shaped = Shaped({"--regex", "And then they lived happily[.]"});
  EXPECT_EQ(shaped["text"], "And then they lived happily.");
  EXPECT_GT(shaped["timings"]["forced_tokens"], 3);
  EXPECT_LE(shaped["timings"]["forced_tokens"], shaped["timings"]["generated_tokens"]);
  EXPECT_EQ(Shaped({"-n", "5"})["timings"]["forced_tokens"], 0);
}

TEST(Generate, RefusesWhatIsNoShape) {
  const auto refused = [](std::vector<std::string> flags, int status, const char* sentence) {
    flags.insert(flags.begin(), {"generate", "-p", kPrompt});
    ExpectError(RunProgram(flags), status, HasSubstr(sentence));
  };
  refused({"--schema", "{\"not\": {}}"}, 1, "keyword 'not' at #");
  refused({"--schema", "{\"properties\": {\"a\": {\"patternProperties\": {\"b\": {}}}}}"}, 1,
          "keyword 'patternProperties' at #/properties/a");
  refused({"--schema", "{"}, 1, "not JSON");
  refused({"--grammar", "root ::= word"}, 1, "'word'");
  refused({"--regex", "a("}, 1, "'a('");
  refused({"--schema", "@no/such/file"}, 1, "'no/such/file'");
  refused({"--grammar", "@no/such/file"}, 1, "'no/such/file'");
  const std::string file = ScratchPath("shape"), hint = absl::StrCat("write @", file, " to read");
  WriteFile(file, "{}");
  refused({"--schema", file}, 2, hint.c_str());
  refused({"--grammar", file}, 2, hint.c_str());
  refused({"--schema", "{}", "--regex", "a"}, 2, "--schema excludes --regex");
  refused({"--schema", "{}", "--grammar", "root ::= \"a\""}, 2, "--schema excludes --grammar");
  refused({"--grammar", "root ::= \"a\"", "--regex", "a"}, 2, "--grammar excludes --regex");
}

TEST(Generate, DraftsChangeNothingButTheTime) {
  const auto run = [](const char* draft, const char* temperature) {
    return RunProgram({"generate", "-p", "ROMEO:\nO Romeo, Romeo, ROMEO:\nO Romeo,", "-n", "100",
                       "-s", "5", "--temp", temperature, "--draft", draft});
  };
  for (const char* temperature : {"0", "0.9"}) {
    const ProgramResult plain = run("0", temperature);
    EXPECT_THAT(plain.err, Not(HasSubstr("drafted")));
    for (const char* draft : {"1", "16"}) EXPECT_EQ(run(draft, temperature).out, plain.out);
  }
  EXPECT_THAT(run("8", "0").err, HasSubstr("drafted tokens accepted ("));
  ExpectError(run("17", "0"), 2, HasSubstr("17"));
}

TEST(Generate, ADraftModelChangesNothingButTheTime) {
  const auto run = [](std::vector<std::string> options) {
    options.insert(options.begin(), {"generate", "-p", "ROMEO:\nO Romeo,", "-n", "60", "-s", "5"});
    return RunProgram(options);
  };
  for (const char* temperature : {"0", "0.9"}) {
    const ProgramResult plain = run({"--temp", temperature});
    const ProgramResult drafted = run({"--temp", temperature, "--draft-model", "models/bard.gguf"});
    EXPECT_EQ(drafted.out, plain.out);
    EXPECT_THAT(drafted.err, HasSubstr("drafted tokens accepted ("));
    EXPECT_EQ(run({"--temp", temperature, "--draft-model", "models/bard.gguf", "--draft", "0"}).out,
              plain.out);
  }
  const std::string other = ScratchPath("other.gguf");
  ASSERT_EQ(RunProgram({"synth", "test-gemma3", "-o", other, "--type", "F16"}).status, 0);
  ExpectError(run({"--draft-model", other}), 1, HasSubstr("cannot draft for"));
  unlink(other.c_str());
  ExpectError(run({"--draft-model", "no/such/file"}), 1, HasSubstr("no/such/file"));
  ExpectError(run({"--draft-model", "models/bard.gguf", "--cache-limit", "16"}), 1,
              AllOf(HasSubstr("draft model"), HasSubstr("--cache-limit")));
  const ProgramResult sandboxed =
      run({"--temp", "0", "--draft-model", "models/bard.gguf", "--sandbox"});
  EXPECT_EQ(sandboxed.out, run({"--temp", "0"}).out) << sandboxed.err;
}

TEST(Generate, StopsOnInterrupt) {
  const std::string path = ScratchPath("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::string out;
  const auto interrupt = [&](pid_t pid) {
    std::ifstream pipe(path, std::ios::binary);
    out.push_back(static_cast<char>(pipe.get()));  // the answer has begun, and would not end
    kill(pid, SIGINT);
    std::ostringstream rest;
    rest << pipe.rdbuf();
    out += rest.str();
  };
  const ProgramResult result =
      RunProgram({"generate", "-p", kPrompt, "-c", "1000000", "-n", "-1", "--ignore-eos"},
                 {.output_path = path, .while_running = interrupt});
  unlink(path.c_str());
  EXPECT_EQ(result.status, 128 + SIGINT) << result.err;
  EXPECT_THAT(out, StartsWith(kPrompt));
  EXPECT_THAT(result.err, HasSubstr("cancelled"));
}

TEST(Generate, ReadsControlTokensOnlyWhenAsked) {
  const auto run = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"generate", "-p", "To be</s>", "-n", "1", "--temp", "0"});
    return RunProgram(more);
  };
  EXPECT_THAT(run({}).err, HasSubstr("inlay: </s> in the prompt is read as letters; --special"));
  EXPECT_THAT(run({"--special"}).err, Not(HasSubstr("letters")));
  const auto prompt_tokens = [&](const char* flag) {
    return run({"-o", "json", flag}).Json()["timings"]["prompt_tokens"].get<int>();
  };
  EXPECT_LT(prompt_tokens("--special"), prompt_tokens("--ignore-eos"));
  EXPECT_THAT(RunProgram({"generate", "-p", "To be", "-n", "1"}).err, Not(HasSubstr("letters")));
}

TEST(Generate, NotesEscapesThatItDoesNotRead) {
  const auto note = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"generate", "-n", "1"});
    return RunProgram(more).err;
  };
  EXPECT_THAT(note({"To be\\nor"}),
              HasSubstr("inlay: \\n in the prompt is read as two characters"));
  EXPECT_THAT(note({"-e", "-p", "To be\\nor"}), Not(HasSubstr("characters")));
  EXPECT_THAT(note({"To be\nor"}), Not(HasSubstr("characters")));
}

// At most two hexadecimal digits are one byte.
TEST(Generate, ReadsEscapes) {
  const auto prompt = [](const char* text) {
    return RunProgram({"generate", "-e", "-p", text, "-n", "1", "-o", "json"}).Json()["prompt"];
  };
  EXPECT_EQ(prompt("\\xc3\\xa9cole"), "\u00e9cole");
  EXPECT_EQ(prompt("\\x41b\\x4\\n\\t\\\\x41"), "Ab\x04\n\t\\x41");
  EXPECT_EQ(prompt("\\101\\u00e9\\'"), "A\u00e9'");
  for (const char* wrong : {"\\x", "\\xg", "a\\", "\\q"})
    ExpectError(RunProgram({"generate", "-e", "-p", wrong}), 2, HasSubstr("-p: "));
}

}  // namespace
}  // namespace inlay
