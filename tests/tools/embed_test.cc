// inlay embed.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gemma_like/embed.h"
#include "gemma_like/load_model.h"
#include "tests/gemma_like/embedding_file.h"
#include "tests/must.h"
#include "tests/tools/program.h"

namespace inlay {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

class Embed : public ::testing::Test {
 protected:
  void SetUp() override { WriteEmbeddingFile({.dense = {2, 3}}, path_); }

  ProgramResult Run(std::vector<std::string> arguments, const std::string& input = "") {
    arguments.insert(arguments.begin(), {"embed", "-m", path_});
    return RunProgram(arguments, {.input = input});
  }

  const std::string path_ = ScratchPath("embedding.gguf");
};

TEST_F(Embed, PrintsAnArrayOfEachText) {
  const ProgramResult result = Run({"To be", "or not"});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.err, IsEmpty());
  const LoadedModel model = Must(LoadModel(path_));
  std::vector<std::string> lines = absl::StrSplit(result.out, '\n');
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines.back(), "");
  const std::vector<std::string> texts = {"To be", "or not"};
  for (size_t i = 0; i < 2; ++i) {
    const std::vector<float> expected =
        Must(EmbedText(*model.engine, Must(EncodeToEmbed(*model.tokenizer, texts[i], 200))));
    EXPECT_EQ(nlohmann::json::parse(lines[i]).get<std::vector<float>>(), expected);
  }
}

// As Ctrl-C ends other programs: only that tells a shell to end its loop.
TEST_F(Embed, EndsByAnInterrupt) {
  const std::string pipe = ScratchPath("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::string lines;
  for (int i = 0; i < 20'000; ++i) lines += "To be\n";
  std::string out;
  const auto interrupt = [&](pid_t pid) {
    std::ifstream vectors(pipe, std::ios::binary);
    out.push_back(static_cast<char>(vectors.get()));  // the first texts are done
    kill(pid, SIGINT);
    std::ostringstream rest;
    rest << vectors.rdbuf();
    out += rest.str();
  };
  const ProgramResult result =
      RunProgram({"embed", "-m", path_, "-"},
                 {.input = lines, .output_path = pipe, .while_running = interrupt});
  ExpectError(result, 128 + SIGINT, HasSubstr("interrupted before all texts were embedded"));
  EXPECT_EQ(out.back(), '\n') << "whole lines";
}

TEST_F(Embed, TakesALinePerText) {
  const std::string expected = Run({"To be", "a", "or not"}).out;
  EXPECT_EQ(Run({}, "To be\na\nor not\n").out, expected);
  EXPECT_EQ(Run({"-"}, "To be\na\nor not").out, expected);
  EXPECT_EQ(Run({}, "To be\r\na\r\nor not\r\n").out, expected) << "a file of Windows";
  EXPECT_THAT(Run({"-"}, "").out, IsEmpty());
  // An empty line is a text, and has a vector.
  const std::vector<std::string> lines = absl::StrSplit(Run({}, "To be\n\n").out, '\n');
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(nlohmann::json::parse(lines[1]).size(), 256u);
}

TEST_F(Embed, ManyTextsInOrder) {
  std::string all, expected;
  for (int i = 0; i < 150; ++i) {
    absl::StrAppend(&all, "line ", i % 3, "\n");
  }
  const std::vector<std::string> three =
      absl::StrSplit(Run({"line 0", "line 1", "line 2"}).out, '\n');
  for (int i = 0; i < 150; ++i) absl::StrAppend(&expected, three[static_cast<size_t>(i % 3)], "\n");
  EXPECT_TRUE(Run({}, all).out == expected);
}

TEST_F(Embed, TokensAreUsedAsGiven) {
  const LoadedModel model = Must(LoadModel(path_));
  const auto ids = Must(EncodeToEmbed(*model.tokenizer, "To be", 200));
  EXPECT_EQ(Run({"--tokens", absl::StrJoin(ids, ",")}).out, Run({"To be"}).out);
  EXPECT_NE(Run({"--tokens", absl::StrCat(ids[1])}).out, Run({"To be"}).out);
}

TEST_F(Embed, WritesOneObjectOnRequest) {
  const auto json = Run({"-o", "json", "To be", "or not"}).Json();
  EXPECT_THAT(json["model"].get<std::string>(), HasSubstr("embedding.gguf"));
  ASSERT_EQ(json["embeddings"].size(), 2u);
  EXPECT_EQ(json["complete"], true);
  const std::vector<std::string> lines = absl::StrSplit(Run({"To be", "or not"}).out, '\n');
  EXPECT_EQ(json["embeddings"][1], nlohmann::json::parse(lines[1]));
  EXPECT_EQ(Run({"-o", "json"}).Json()["embeddings"].size(), 0u);
}

TEST_F(Embed, RefusesWhatDoesNotFit) {
  std::string words;
  for (int i = 0; i < 300; ++i) absl::StrAppend(&words, "word ");
  ExpectError(Run({words, "To be"}), 1,
              AllOf(HasSubstr("text 1: the text has"), HasSubstr("the context holds 200")));
  ExpectError(Run({"-o", "json", words}), 1, HasSubstr("text 1: the text has"));
  ExpectError(Run({}, std::string(900'000, 'a')), 1, HasSubstr("text 1: the line has more than"));
  ExpectError(Run({"--tokens", "2,1024"}), 1, HasSubstr("1024"));
  std::string many = "1";
  for (int i = 0; i < 200; ++i) many += ",1";
  ExpectError(Run({"--tokens", many}), 1, HasSubstr("text 1: 201 tokens are more than"));
  ExpectError(Run({"To be", "--tokens", "1"}), 2, HasSubstr("excludes"));
}

// The texts before the one that is refused have their vectors, in the batch at hand and in those
// that were written.
TEST_F(Embed, AnErrorTakesNothingFromTheTextsBefore) {
  const std::string long_line(900'000, 'a');
  const std::string line = Run({"To be"}).out;
  for (const size_t before : {size_t{1}, size_t{70}}) {
    std::string input, expected;
    for (size_t i = 0; i < before; ++i) {
      input += "To be\n";
      expected += line;
    }
    const auto message = HasSubstr(absl::StrCat("text ", before + 1, ": the line has more than"));
    const ProgramResult text = Run({}, input + long_line);
    EXPECT_EQ(text.status, 1);
    EXPECT_THAT(text.err, message);
    EXPECT_TRUE(text.out == expected) << before;
    const ProgramResult json = Run({"-o", "json"}, input + long_line);
    EXPECT_EQ(json.status, 1);
    EXPECT_THAT(json.err, message);
    EXPECT_EQ(json.Json()["embeddings"].size(), before);
    EXPECT_EQ(json.Json()["complete"], false);
  }
}

TEST_F(Embed, InTheSandboxAndWithoutAnOutput) {
  EXPECT_EQ(Run({"--sandbox", "-"}, "To be\n").out, Run({"To be"}).out);
  ExpectError(RunProgram({"embed", "-m", path_, "To be"}, {.output_path = "/dev/full"}), 1,
              HasSubstr("standard output"));
  ExpectError(RunProgram({"embed", "-m", path_, "To be"}, {.output_closed = true}), 1,
              HasSubstr("standard output"));
}

TEST_F(Embed, AModelEitherEmbedsOrGenerates) {
  ExpectError(RunProgram({"embed", "To be"}), 1,
              AllOf(HasSubstr("config bard"), HasSubstr("generates text and does not embed it")));
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"generate", "-p", "To be"},
                                             {"chat"},
                                             {"logits", "--tokens", "2,5"},
                                             {"perplexity", "-f", "README.md"},
                                             {"bench", "-p", "2", "-n", "2"}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"-m", path_});
    ExpectError(RunProgram(arguments), 1,
                AllOf(HasSubstr("test-gemma-embedding"), HasSubstr("embeds texts")));
  }
}

}  // namespace
}  // namespace inlay
