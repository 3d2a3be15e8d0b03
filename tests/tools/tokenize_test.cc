// inlay tokenize.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "io/gguf/gguf.h"
#include "io/tokenizer/load_tokenizer.h"
#include "io/tokenizer/tokenizer.h"
#include "tests/repetitions.h"
#include "tests/tools/program.h"
#include "tools/json_text.h"

namespace inlay {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

std::string NullTerminated(const nlohmann::json& cases) {
  std::string all;
  for (const auto& text_and_ids : cases) {
    all += text_and_ids[0].get<std::string>();
    all += '\0';
  }
  return all;
}

TEST(Tokenize, MatchesTheReference) {
  const auto cases = nlohmann::json::parse(ReadFile("tests/golden/tokenizer/bard_ids.json"));
  const ProgramResult text =
      RunProgram({"tokenize", "--null", "--no-bos"}, {.input = NullTerminated(cases)});
  const auto json = RunProgram({"tokenize", "--null", "--no-bos", "-o", "json", "-"},
                               {.input = NullTerminated(cases)})
                        .Json();
  ASSERT_EQ(json.size(), cases.size());
  std::string lines;
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(json[i], cases[i][1]);
    lines += absl::StrJoin(cases[i][1].get<std::vector<int32_t>>(), " ") + "\n";
  }
  EXPECT_EQ(text.out, lines);
  EXPECT_THAT(text.err, IsEmpty());

  const ProgramResult decoded = RunProgram({"tokenize", "--decode", "--null"}, {.input = lines});
  EXPECT_EQ(decoded.out, NullTerminated(cases));
  const auto decoded_json =
      RunProgram({"tokenize", "--decode", "-o", "json"}, {.input = lines}).Json();
  for (size_t i = 0; i < cases.size(); ++i) EXPECT_EQ(decoded_json[i], cases[i][0]);
}

// Other commands take this argument as the model; its bytes are hardly meant as text.
TEST(Tokenize, RefusesAModelAsItsText) {
  ExpectError(RunProgram({"tokenize", kDemoModel}), 2,
              AllOf(HasSubstr(kDemoModel), HasSubstr("is a model, which -m names")));
}

TEST(Tokenize, TakesALinePerText) {
  const std::string a = RunProgram({"tokenize"}, {.input = "To be\n\nor not"}).out;
  EXPECT_THAT(a, testing::MatchesRegex("2 [0-9 ]+\n2\n2 [0-9 ]+\n"));
  EXPECT_EQ(RunProgram({"tokenize"}, {.input = "To be\n\nor not\n"}).out, a);
  EXPECT_EQ(RunProgram({"tokenize", "--decode"}, {.input = a}).out, "To be\n\nor not\n");
  EXPECT_EQ(RunProgram({"tokenize"}).out, "");
  EXPECT_EQ(RunProgram({"tokenize", "-o", "json"}).Json(), nlohmann::json::array());
}

TEST(Tokenize, ReadsControlTokensOnlyWhenAsked) {
  const auto ids = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"tokenize", "--no-bos", "-o", "json"});
    return RunProgram(more, {.input = "</s>"}).Json()[0];
  };
  EXPECT_GT(ids({}).size(), 1u);
  EXPECT_EQ(ids({"--special"}), nlohmann::json({1}));
}

// Only the vocabulary is read, so files of any architecture will do.
TEST(Tokenize, ReadsVocabulariesOfOtherModels) {
  const ProgramResult result =
      RunProgram({"tokenize", "-m", "tests/golden/vocab/llama-spm.gguf", "--no-bos"},
                 {.input = "Hello world"});
  EXPECT_EQ(result.out, "15043 3186\n");
}

TEST(Tokenize, RefusesWhatIsNoTokenId) {
  const auto decode = [](const std::string& lines) {
    return RunProgram({"tokenize", "--decode"}, {.input = lines});
  };
  ExpectError(decode("5 6\n5 x"), 1, AllOf(HasSubstr("line 2"), HasSubstr("'x'")));
  ExpectError(decode("1024"), 1, HasSubstr("from 0 to 1023"));
  ExpectError(decode("-1"), 1, HasSubstr("'-1'"));
  EXPECT_EQ(decode("965,983 \t 4\n").status, 0);
  ExpectError(RunProgram({"tokenize", "no/such/file"}), 1, HasSubstr("'no/such/file'"));
}

// A stream of pieces gives what the whole would, whatever its bytes are.
TEST(Tokenize, DecodesAnyIds) {
  const auto file = GgufFile::Open("tests/golden/vocab/llama-spm.gguf");
  ASSERT_TRUE(file.ok());
  const auto tokenizer = LoadTokenizer(*file);
  ASSERT_TRUE(tokenizer.ok());
  std::mt19937 random(8);
  std::vector<std::string> texts;
  std::string lines;
  for (int i = 0; i < 200; ++i) {
    std::vector<int32_t> ids(random() % 60);
    // Half of them are single bytes, which make all kinds of broken characters.
    for (int32_t& id : ids) id = static_cast<int32_t>(random() % (random() % 2 ? 259 : 32000));
    lines += absl::StrJoin(ids, i % 2 ? " " : " , ") + (i % 3 ? "\n" : "\r\n");
    texts.push_back((*tokenizer)->Decode(ids));
  }
  std::vector<std::string> arguments = {"tokenize", "--decode", "-m",
                                        "tests/golden/vocab/llama-spm.gguf", "--null"};
  EXPECT_EQ(RunProgram(arguments, {.input = lines}).out,
            absl::StrJoin(texts, std::string(1, '\0')) + std::string(1, '\0'));
  arguments.insert(arguments.end(), {"-o", "json"});
  // Bytes that are not UTF-8 are replaced as they are in a whole text.
  EXPECT_EQ(RunProgram(arguments, {.input = lines}).Json(), nlohmann::json::parse(JsonText(texts)));
}

// AddressSanitizer keeps what is freed for a while, so that a process's peak says nothing there.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kPeakIsTrue = false;
#elif defined(__has_feature)
constexpr bool kPeakIsTrue = !__has_feature(address_sanitizer);
#else
constexpr bool kPeakIsTrue = true;
#endif

// What it takes of memory does not depend on the length of a text.
TEST(Tokenize, TakesTextsOfAnyLength) {
  const std::string input = ScratchPath("long");
  const std::string ids = ScratchPath("ids");
  const std::string output = ScratchPath("output");
  constexpr absl::string_view kSentence = "To be, or not to be: that is the question. ";
  constexpr int kSentences = Repetitions(300'000);  // 13 MB
  {
    std::ofstream file(input);
    for (int i = 0; i < kSentences; ++i) file << kSentence;
  }
  WriteFile(ids, "");
  WriteFile(output, "");
  const size_t allowed = RunProgram({"tokenize"}, {.input = "To be"}).peak_bytes + (8 << 20);
  const auto run = [&](std::vector<std::string> arguments, const std::string& to) {
    arguments.insert(arguments.begin(), "tokenize");
    const ProgramResult result = RunProgram(arguments, {.output_path = to});
    EXPECT_EQ(result.status, 0) << result.err;
    if (kPeakIsTrue) {
      EXPECT_LT(result.peak_bytes, allowed) << arguments[1];
    }
  };
  run({input}, ids);
  run({"-o", "json", input}, "/dev/null");
  run({"--decode", ids}, output);
  run({"--decode", "-o", "json", ids}, "/dev/null");
  std::string text;
  for (int i = 0; i < kSentences; ++i) absl::StrAppend(&text, kSentence);
  EXPECT_TRUE(ReadFile(output) == text + "\n");
  for (const std::string& path : {input, ids, output}) unlink(path.c_str());
}

}  // namespace
}  // namespace inlay
