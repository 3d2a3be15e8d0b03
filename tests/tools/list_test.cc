// inlay list.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "io/gguf/gguf.h"
#include "tests/io/gguf/changed_gguf.h"
#include "tests/tools/program.h"

namespace inlay {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ListTest : public testing::Test {
 protected:
  ListTest() : home_(ScratchPath("home")) {
    fs::create_directories(home_);
    env_ = {{"HOME", home_}, {"OLLAMA_MODELS", home_ + "/ollama"}};
  }

  void Add(const std::string& path, const std::string& contents) {
    fs::create_directories(fs::path(home_ + "/" + path).parent_path());
    WriteFile(home_ + "/" + path, contents);
  }
  // A file of the demo model that says it is of another architecture.
  std::string ForeignModel() {
    const auto file = GgufFile::Open(kDemoModel);
    EXPECT_TRUE(file.ok());
    const std::string path = ScratchPath("foreign.gguf");
    WriteChanged(
        *file,
        {.without_keys = {"general.architecture"},
         .add_keys =
             [](GgufWriter& writer) { writer.SetString("general.architecture", "parrot"); }},
        path);
    return path;
  }

  const std::string home_;
  std::map<std::string, std::string> env_;
};

// What is listed can be run by its name, from wherever it is.
TEST_F(ListTest, NamesAreThoseOfModels) {
  const std::string hash(64, 'a');
  Add("ollama/blobs/sha256-" + hash, ReadFile(kDemoModel));
  const std::string manifest =
      R"({"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:)" +
      hash + "\"}]}";
  Add("ollama/manifests/registry.ollama.ai/library/bard/1b", manifest);
  Add("ollama/manifests/registry.ollama.ai/library/bard/latest", manifest);
  Add("ollama/manifests/registry.ollama.ai/library/empty/latest", R"({"layers": []})");
  Add(".lmstudio/models/u/one/bard-F16.gguf", ReadFile(kDemoModel));
  Add(".lmstudio/models/u/two/bard-F16.gguf", ReadFile(kDemoModel));
  Add(".lmstudio/models/u/two/bard-Q8_0.gguf", ReadFile(kDemoModel));
  const auto run = [&](const std::string& name) {
    return RunProgram({"inspect", name}, {.env = env_});
  };
  for (const char* name : {"bard:1b", "bard", "bard:latest", "u/one:F16", "u/one", "u/two:Q8_0"})
    EXPECT_EQ(run(name).status, 0) << name << ": " << run(name).err;
  ExpectError(run("u/two"), 1,
              AllOf(HasSubstr("u/two is the name of 2 models"), HasSubstr("u/two:Q8_0 (")));
  ExpectError(run("empty"), 1, HasSubstr("names no file in GGUF"));
  ExpectError(run("no/such"), 1, HasSubstr("no/such cannot be opened: No such file"));
  ExpectError(run("no/such.gguf"), 1, Not(HasSubstr("-hf")));
  // A file of this name comes first.
  WriteFile(home_ + "/bard", "no model");
  ExpectError(RunProgram({"inspect", "bard"}, {.env = env_, .folder = home_}), 1,
              HasSubstr("not a GGUF file"));
}

TEST_F(ListTest, AFolderStandsForItsOnlyModel) {
  Add("models/bard.gguf", ReadFile(kDemoModel));
  Add("models/mmproj-bard.gguf", "no model");
  Add("models/notes.txt", "no model");
  fs::create_directories(home_ + "/none");
  const auto run = [&](const std::string& folder) {
    return RunProgram({"inspect", "-m", home_ + "/" + folder}, {.env = env_});
  };
  EXPECT_EQ(run("models").status, 0) << run("models").err;
  ExpectError(run("none"), 1, HasSubstr("is a folder without a model"));
  Add("models/other.gguf", ReadFile(kDemoModel));
  ExpectError(run("models"), 1, HasSubstr("with 2 models: bard.gguf, other.gguf"));
}

TEST_F(ListTest, SaysWhereItLooked) {
  const ProgramResult none = RunProgram({"list"}, {.env = env_});
  EXPECT_EQ(none.status, 0);
  EXPECT_EQ(none.out,
            absl::StrCat("no models in ", home_, "/.cache/huggingface/hub, ", home_, "/ollama, ",
                         home_, "/.lmstudio/models, ", home_, "/.cache/lm-studio/models\n"));
  EXPECT_EQ(RunProgram({"list", "-o", "json"}, {.env = env_}).Json(), nlohmann::json::array());
}

TEST_F(ListTest, ListsModelsAndWhatBecomesOfThem) {
  const std::string hash(64, 'a');
  const std::string repo = ".cache/huggingface/hub/models--user--repo";
  const std::string link = repo + "/snapshots/" + std::string(40, 'c') + "/bard-F16.gguf";
  Add(repo + "/blobs/" + hash, ReadFile(kDemoModel));
  fs::create_directories(fs::path(home_ + "/" + link).parent_path());
  fs::create_symlink("../../blobs/" + hash, home_ + "/" + link);
  Add("ollama/blobs/sha256-" + hash, ReadFile(ForeignModel()));
  Add("ollama/manifests/registry.ollama.ai/library/parrot/7b",
      R"({"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:)" +
          hash + "\"}]}");
  Add("ollama/manifests/registry.ollama.ai/library/empty/latest", R"({"layers": []})");
  Add(".lmstudio/models/u/r/cut\x1b[31m.gguf", ReadFile(kDemoModel).substr(0, 100'000));
  Add(".lmstudio/models/u/r/other.gguf", "no model");
  fs::create_directory_symlink(home_ + "/.lmstudio", home_ + "/.cache/lm-studio");

  const ProgramResult text = RunProgram({"list"}, {.env = env_});
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text.out, AllOf(HasSubstr("user/repo:F16"), HasSubstr("13.5 MB"), HasSubstr("bard"),
                              HasSubstr("does not run: it has architecture 'parrot'"),
                              HasSubstr("parrot:7b")));
  const auto json = RunProgram({"list", "-o", "json"}, {.env = env_}).Json();
  ASSERT_EQ(json.size(), 5u) << json;
  EXPECT_EQ(json[0]["source"], "hub");
  EXPECT_EQ(json[0]["name"], "user/repo:F16");
  EXPECT_EQ(json[0]["path"], home_ + "/" + link);
  EXPECT_EQ(json[0]["file_bytes"], fs::file_size(kDemoModel));
  EXPECT_EQ(json[0]["config"], "bard");
  // What inspect says of it.
  const auto memory = RunProgram({"inspect", "-m", kDemoModel, "-o", "json"}).Json()["memory"];
  EXPECT_EQ(json[0]["context"], memory["context"]);
  EXPECT_EQ(json[0]["bytes_of_memory"], memory["bytes_of_weights"].get<uint64_t>() +
                                            memory["bytes_of_scratch"].get<uint64_t>() +
                                            memory["bytes_per_conversation"].get<uint64_t>());
  const std::vector<std::pair<std::string, std::string>> others = {
      {"empty:latest", "names no file in GGUF"},
      {"parrot:7b", "'parrot'"},
      {"u/r:cut\x1b[31m.gguf", "the file is truncated"},
      {"u/r:other.gguf", "not a GGUF file"}};
  for (size_t i = 0; i < others.size(); ++i) {
    const auto& model = json[i + 1];
    EXPECT_EQ(model["name"], others[i].first);
    EXPECT_TRUE(model["config"].is_null());
    EXPECT_THAT(model["error"].get<std::string>(), HasSubstr(others[i].second));
  }
}

// An adapter or the like is no model, whatever its file is called.
TEST_F(ListTest, LeavesOutWhatBelongsToModels) {
  const auto file = GgufFile::Open(kDemoModel);
  ASSERT_TRUE(file.ok()) << file.status();
  const std::string path = ScratchPath("adapter.gguf");
  WriteChanged(*file,
               {.without_keys = {"general.type"},
                .add_keys = [](GgufWriter& w) { w.SetString("general.type", "adapter"); }},
               path);
  Add(".lmstudio/models/u/r/adapter.gguf", ReadFile(path));
  EXPECT_THAT(RunProgram({"list"}, {.env = env_}).out, HasSubstr("no models in "));
  Add(".lmstudio/models/u/r/bard.gguf", ReadFile(kDemoModel));
  const auto json = RunProgram({"list", "-o", "json"}, {.env = env_}).Json();
  ASSERT_EQ(json.size(), 1u) << json;
  EXPECT_EQ(json[0]["name"], "u/r:bard.gguf");
}

}  // namespace
}  // namespace inlay
