// Finding the demo model.
#include "tools/demo_model.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/tools/program.h"

namespace inlay {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class DemoModel : public testing::Test {
 protected:
  DemoModel() : root_(ScratchPath("tree")) { fs::remove_all(root_); }
  ~DemoModel() override { fs::remove_all(root_); }

  // Creates an empty file of that path in the tree.
  void Touch(const fs::path& path) {
    fs::create_directories((root_ / path).parent_path());
    WriteFile((root_ / path).string(), "");
  }

  fs::path root_;
};

TEST_F(DemoModel, IsFoundAroundABuildFolder) {
  Touch("source/models/bard.gguf");
  EXPECT_EQ(FindDemoModel(root_ / "source/build/release"), root_ / "source/models/bard.gguf");
}

TEST_F(DemoModel, IsFoundWhereItIsInstalled) {
  Touch("prefix/share/inlay/models/bard.gguf");
  EXPECT_EQ(FindDemoModel(root_ / "prefix/bin"), root_ / "prefix/share/inlay/models/bard.gguf");
}

TEST_F(DemoModel, MayBeMissing) {
  fs::create_directories(root_ / "models/bard.gguf");  // a folder is no model
  EXPECT_EQ(FindDemoModel(root_ / "bin"), std::nullopt);
}

TEST(Model, CanBeNamedByTheEnvironment) {
  const std::vector<std::string> arguments = {"generate", "-p", "A", "-n", "1"};
  ExpectError(RunProgram(arguments, {.env = {{"INLAY_MODEL", "no/such/model"}}}), 1,
              HasSubstr("no/such/model"));
  EXPECT_EQ(RunProgram(arguments, {.env = {{"INLAY_MODEL", "models/bard.gguf"}}}).status, 0);
  EXPECT_EQ(RunProgram({"generate", "-p", "A", "-n", "1", "-m", "models/bard.gguf"},
                       {.env = {{"INLAY_MODEL", "no/such/model"}}})
                .status,
            0);
}

}  // namespace
}  // namespace inlay
