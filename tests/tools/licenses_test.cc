// inlay licenses, and the licence of a model in what is made of its file.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "io/gguf/gguf.h"
#include "io/gguf/gguf_writer.h"
#include "tests/io/gguf/changed_gguf.h"
#include "tests/tools/program.h"

namespace inlay {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(Licenses, AreInTheProgram) {
  const ProgramResult result = RunProgram({"licenses"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, StartsWith(ReadFile("LICENSE")));
  EXPECT_THAT(result.out, AllOf(HasSubstr(ReadFile("NOTICE")), Not(HasSubstr("model inside"))));
}

class ModelLicenseTest : public testing::Test {
 protected:
  ModelLicenseTest() : model_(ScratchPath("licensed.gguf")), made_(ScratchPath("made")) {
    const auto file = GgufFile::Open("models/bard.gguf");
    EXPECT_TRUE(file.ok()) << file.status();
    const auto add = [](GgufWriter& writer) {
      writer.SetString("general.license", "other");
      writer.SetString("general.license.name", "bard terms");
      writer.SetString("general.license.link", "https://example.org/terms");
    };
    WriteChanged(*file, {.without_keys = {"general.license"}, .add_keys = add}, model_);
  }
  ~ModelLicenseTest() override {
    unlink(model_.c_str());
    unlink(made_.c_str());
  }

  static void ExpectLicense(const std::string& path) {
    EXPECT_THAT(RunProgram({"inspect", "-m", path}).out,
                HasSubstr("\nlicense: other: bard terms (https://example.org/terms)\n"));
    const nlohmann::json license = {
        {"id", "other"}, {"name", "bard terms"}, {"link", "https://example.org/terms"}};
    EXPECT_EQ(RunProgram({"inspect", "-m", path, "-o", "json"}).Json()["license"], license);
  }

  std::string model_;
  std::string made_;
};

TEST_F(ModelLicenseTest, IsShown) {
  ExpectLicense(model_);
  const std::string vocabulary = "tests/golden/vocab/llama-spm.gguf";
  EXPECT_THAT(RunProgram({"inspect", "-m", vocabulary}).out,
              HasSubstr("\nlicense: not stated in the file\n"));
  EXPECT_EQ(RunProgram({"inspect", "-m", vocabulary, "-o", "json"}).Json()["license"]["id"],
            nullptr);
}

TEST_F(ModelLicenseTest, TravelsWithPackedFiles) {
  ASSERT_EQ(RunProgram({"pack", model_, made_}).status, 0);
  ExpectLicense(made_);
}

TEST_F(ModelLicenseTest, TravelsWithQuantizedFiles) {
  ASSERT_EQ(RunProgram({"quantize", model_, made_, "Q8_0"}).status, 0);
  ExpectLicense(made_);
}

TEST_F(ModelLicenseTest, TravelsWithBundles) {
  ASSERT_EQ(RunProgram({"bundle", model_, "-o", made_}).status, 0);
  ExpectLicense(made_);
  const ProgramResult result = RunProgram({"licenses"}, {.program = made_});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr(ReadFile("NOTICE")),
                                HasSubstr("\nThe model inside this program: other: bard terms "
                                          "(https://example.org/terms)\n")));
  // Cut off: the licences of the program are printed all the same.
  std::filesystem::resize_file(made_, std::filesystem::file_size(made_) - 1);
  const ProgramResult cut = RunProgram({"licenses"}, {.program = made_});
  EXPECT_EQ(cut.status, 1);
  EXPECT_THAT(cut.err, HasSubstr("which is missing"));
  EXPECT_THAT(cut.out, HasSubstr(ReadFile("NOTICE")));
}

}  // namespace
}  // namespace inlay
