// inlay pack and inlay bundle.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>

#include "tests/gemma_like/embedding_file.h"
#include "tests/tools/program.h"

namespace inlay {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

ProgramResult Generate(const std::string& model) {
  return RunProgram({"generate", "-m", model, "-p", "To be", "-n", "30", "-s", "3"});
}

TEST(Pack, WritesAModelThatSaysTheSame) {
  const std::string packed = ScratchPath("bard.packed");
  const ProgramResult pack = RunProgram({"pack", kDemoModel, packed});
  EXPECT_EQ(pack.status, 0) << pack.err;
  EXPECT_THAT(pack.out, IsEmpty());
  const ProgramResult expected = Generate(kDemoModel);
  ASSERT_EQ(expected.status, 0) << expected.err;
  EXPECT_EQ(Generate(packed).out, expected.out);
  const std::string logits = RunProgram({"logits", "-m", kDemoModel, "--tokens", "2,17,43"}).out;
  EXPECT_EQ(RunProgram({"logits", "-m", packed, "--tokens", "2,17,43"}).out, logits);

  const ProgramResult text = RunProgram({"inspect", "-m", packed});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("inlay.packed.config"), HasSubstr("F16 packed")));
  const auto json = RunProgram({"inspect", "-m", packed, "-o", "json"}).Json();
  EXPECT_EQ(json["tensors"][0]["name"], "token_embd.weight");
  EXPECT_EQ(json["tensors"][0].contains("packed"), false);
  EXPECT_EQ(json["tensors"][1]["name"], "output.weight");
  EXPECT_EQ(json["tensors"][1]["packed"], true);
  EXPECT_EQ(json["config"]["name"], "bard");

  const ProgramResult chat = RunProgram({"chat", "-m", packed}, {.input = "Hello\n/exit\n"});
  EXPECT_EQ(chat.status, 0) << chat.err;
  // A conversation that one of the two began, the other goes on with.
  const std::string session = ScratchPath("session");
  std::filesystem::remove(session);
  EXPECT_EQ(
      RunProgram({"generate", "-m", kDemoModel, "-p", "To be", "-n", "5", "--session", session})
          .status,
      0);
  const ProgramResult more =
      RunProgram({"generate", "-m", packed, "-p", " or", "-n", "5", "--session", session});
  EXPECT_EQ(more.status, 0) << more.err;
  ExpectError(RunProgram({"quantize", packed, ScratchPath("q8"), "Q8_0"}), 1,
              HasSubstr("is a packed file"));
}

TEST(Pack, RefusesWhatIsNoModel) {
  const std::string output = ScratchPath("not-written");
  ExpectError(RunProgram({"pack", "tests/golden/vocab/llama-spm.gguf", output}), 1,
              HasSubstr("'llama'"));
  ExpectError(RunProgram({"pack", "LICENSE", output}), 1, HasSubstr("not a GGUF file"));
  ExpectError(RunProgram({"pack", kDemoModel, "no/such/folder/packed"}), 1,
              HasSubstr("no/such/folder"));
  ExpectError(RunProgram({"pack", kDemoModel}), 2, HasSubstr("output"));
  EXPECT_FALSE(fs::exists(output));
}

class Bundle : public testing::Test {
 protected:
  Bundle() : folder_(ScratchPath("empty")), program_(folder_ + "/shakespeare") {
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }
  ~Bundle() override { fs::remove_all(folder_); }

  // Of the copied program alone, in its folder.
  ProgramResult Run(const std::vector<std::string>& arguments) {
    return RunProgram(arguments, {.program = "./shakespeare", .folder = folder_});
  }

  std::string folder_;
  std::string program_;
};

TEST_F(Bundle, IsAProgramThatNeedsNoOtherFile) {
  const ProgramResult bundle = RunProgram({"bundle", kDemoModel, "-o", program_});
  ASSERT_EQ(bundle.status, 0) << bundle.err;
  const ProgramResult text = Run({"To be"});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, StartsWith("To be"));
  EXPECT_GT(text.out.size(), 100u);
  EXPECT_EQ(Run({"generate", "-p", "To be", "-n", "30", "-s", "3"}).out, Generate(kDemoModel).out);
  EXPECT_EQ(Run({"To be", "-n", "30", "-s", "3"}).out, Generate(kDemoModel).out);
  EXPECT_EQ(Run({"-p", "To be", "-n", "30", "-s", "3"}).out, Generate(kDemoModel).out);
  EXPECT_EQ(RunProgram({}, {.input = "To be", .program = "./shakespeare", .folder = folder_})
                .out.rfind("To be", 0),
            0u);
  EXPECT_EQ(RunProgram({"-n", "30", "-s", "3"},
                       {.input = "To be", .program = "./shakespeare", .folder = folder_})
                .out,
            Generate(kDemoModel).out);
  EXPECT_THAT(Run({"help"}).out, HasSubstr("quantize"));
  EXPECT_THAT(Run({"-v"}).out, StartsWith("inlay "));
  EXPECT_EQ(Run({"inspect", "-o", "json"}).Json()["config"]["name"], "bard");
  // It goes before the environment's model, and after -m.
  EXPECT_EQ(RunProgram({"generate", "-p", "A", "-n", "1"},
                       {.env = {{"INLAY_MODEL", "no/such"}}, .program = program_})
                .status,
            0);
  ExpectError(RunProgram({"generate", "-p", "A", "-m", "no/such"}, {.program = program_}), 1,
              HasSubstr("no/such"));
  // Other programs can use it as a model file.
  EXPECT_EQ(Generate(program_).out, Generate(kDemoModel).out);
}

TEST_F(Bundle, TakesNoCommandForAPromptAfterHelp) {
  ASSERT_EQ(RunProgram({"bundle", kDemoModel, "-o", program_}).status, 0);
  ExpectError(Run({"help", "sing"}), 2, HasSubstr("'sing' is not one of the commands"));
  EXPECT_EQ(Run({"help", "generate"}).out, RunProgram({"help", "generate"}).out);
}

TEST_F(Bundle, EmbedsWithAModelThatDoes) {
  const std::string model = ScratchPath("embedding.gguf");
  WriteEmbeddingFile({}, model);
  ASSERT_EQ(RunProgram({"bundle", model, "-o", program_}).status, 0);
  const std::string expected = RunProgram({"embed", "-m", model, "To be"}).out;
  EXPECT_THAT(expected, StartsWith("["));
  EXPECT_EQ(Run({"To be"}).out, expected);
  EXPECT_EQ(RunProgram({}, {.input = "To be\n", .program = program_}).out, expected);
}

TEST_F(Bundle, GoesBehindAnyProgram) {
  const std::string packed = ScratchPath("bard.packed");
  ASSERT_EQ(RunProgram({"pack", kDemoModel, packed}).status, 0);
  const std::string first = ScratchPath("first");
  ASSERT_EQ(RunProgram({"bundle", kDemoModel, "-o", first}).status, 0);
  // A packed model, and a program that has one already.
  ASSERT_EQ(RunProgram({"bundle", packed, "-o", program_, "--binary", first}).status, 0);
  EXPECT_TRUE(ReadFile(program_) == ReadFile(first));
  ExpectError(RunProgram({"bundle", kDemoModel, "-o", program_, "--binary", "no/such", "--force"}),
              1, HasSubstr("no/such"));
  EXPECT_TRUE(ReadFile(program_) == ReadFile(first)) << "the older one is gone";
  ExpectError(RunProgram({"bundle", kDemoModel, "-o", program_, "--binary", packed, "--force"}), 1,
              HasSubstr("bard.packed is not a program of inlay's"));
}

// A program of inlay's with these bytes in place of those.
void WriteOtherProgram(const std::string& path, const std::string& bytes,
                       const std::string& instead) {
  std::string program = ReadFile(InlayProgram());
  ASSERT_EQ(bytes.size(), instead.size());
  size_t found = 0;
  for (size_t at = 0; (at = program.find(bytes, at)) != std::string::npos; ++found)
    program.replace(at, bytes.size(), instead);
  ASSERT_GT(found, 0u);
  WriteFile(path, program);
  fs::permissions(path, fs::perms::owner_all);
}

// The program is not run: it may be another machine's.
TEST_F(Bundle, RefusesAProgramWithoutTheModelsConfig) {
  const std::string other = ScratchPath("other");
  WriteOtherProgram(other, "INLAY config: bard\n", "INLAY config: bird\n");
  ExpectError(RunProgram({"bundle", kDemoModel, "-o", program_, "--binary", other}), 1,
              AllOf(HasSubstr("other has no config bard, which the model "), HasSubstr(kDemoModel),
                    HasSubstr(" needs")));
  EXPECT_FALSE(fs::exists(program_));
}

// One of an older version does not say which configs it has.
TEST_F(Bundle, WarnsOfAProgramThatDoesNotTellItsConfigs) {
  const std::string older = ScratchPath("older");
  WriteOtherProgram(older, "INLAY config: ", "INLAY konfig: ");
  const ProgramResult result =
      RunProgram({"bundle", kDemoModel, "-o", program_, "--binary", older});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.err, HasSubstr("older does not say which configs it has"));
  EXPECT_EQ(Run({"generate", "-p", "To be", "-n", "30", "-s", "3"}).out, Generate(kDemoModel).out);
}

TEST_F(Bundle, SaysWhenItsModelIsDamaged) {
  ASSERT_EQ(RunProgram({"bundle", kDemoModel, "-o", program_}).status, 0);
  std::string bytes = ReadFile(program_);
  bytes[bytes.size() - 24] ^= 1;  // the offset
  WriteFile(program_, bytes);
  fs::permissions(program_, fs::perms::owner_all);
  ExpectError(Run({"generate", "-p", "A"}), 1, HasSubstr("the bundled model"));
}

// Cut within the model, at the end of the program, and with another model at hand.
TEST_F(Bundle, SaysWhenItsModelIsMissing) {
  ASSERT_EQ(RunProgram({"bundle", kDemoModel, "-o", program_}).status, 0);
  const size_t size = fs::file_size(program_);
  uint64_t offset = 0;  // of the model
  std::memcpy(&offset, ReadFile(program_).substr(size - 24).data(), sizeof(offset));
  for (const size_t cut : {size - 1, size - 24, size - 1'000'000, offset}) {
    SCOPED_TRACE(cut);
    fs::resize_file(program_, cut);
    for (const std::vector<std::string>& arguments :
         std::vector<std::vector<std::string>>{{"generate", "-p", "A"}, {"To be"}, {"inspect"}}) {
      ExpectError(
          RunProgram(arguments, {.env = {{"INLAY_MODEL", kDemoModel}}, .program = program_}), 1,
          AllOf(HasSubstr(program_), HasSubstr("model inside, which is missing")));
    }
  }
  // It is still a program, for models that are named.
  EXPECT_EQ(RunProgram({"inspect", "-m", kDemoModel}, {.program = program_}).status, 0);
  ASSERT_EQ(RunProgram({"bundle", kDemoModel, "-o", program_ + "2"}, {.program = program_}).status,
            0);
  EXPECT_EQ(RunProgram({"To be", "-n", "2"}, {.program = program_ + "2"}).status, 0);
}

TEST(BarePrompt, IsForProgramsWithAModel) {
  ExpectError(RunProgram({"To be"}), 2, HasSubstr("'To be' is not one of the commands"));
}

}  // namespace
}  // namespace inlay
