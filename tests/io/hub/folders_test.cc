// The folders of Ollama and LM Studio.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "io/hub/files_below.h"
#include "io/hub/lm_studio_folder.h"
#include "io/hub/ollama_folder.h"
#include "io/hub/small_file.h"
#include "tests/io/file/folder_test.h"

namespace inlay {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::string kDigest(64, 'd');

class FoldersTest : public FolderTest<> {
 protected:
  void Add(const std::string& path, const std::string& bytes) {
    fs::create_directories(fs::path(Path(path)).parent_path());
    Make(path, bytes);
  }
  static std::string Manifest(const std::string& digest,
                              const std::string& type = "application/vnd.ollama.image.model") {
    return absl::StrCat(R"({"schemaVersion": 2, "layers": [{"mediaType": "x", "digest": "sha256:0"},
                            {"mediaType": ")",
                        type, R"(", "digest": ")", digest, R"(", "size": 4}]})");
  }
};

TEST_F(FoldersTest, ReadsOllamasManifests) {
  const std::string file = "manifests/registry.ollama.ai/";
  Add("blobs/sha256-" + kDigest, "GGUF");
  Add(file + "library/gemma3/1b", Manifest("sha256:" + kDigest));
  Add(file + "someone/model/latest", Manifest("sha256:" + kDigest));
  Add("manifests/hf.co/user/repo/Q4_K_M",
      absl::StrCat(R"({"manifests": [{"layers": []}, )", Manifest("sha256:" + kDigest), "]}"));
  Add(file + "library/no/layer", Manifest("sha256:" + kDigest, "application/json"));
  Add(file + "library/no/blob", Manifest("sha256:" + std::string(64, 'e')));
  Add(file + "library/evil/digest", Manifest("sha256:../../../../etc/passwd"));
  Add(file + "library/bad/json", "{");
  Add(file + "library/stray", "{");
  std::vector<std::string> lines;
  for (const LocalModel& model : ListOllamaModels(Path(""))) {
    lines.push_back(model.name + (model.problem.empty() ? " ok" : ": " + model.problem));
    EXPECT_EQ(model.path.empty(), !model.problem.empty());
  }
  EXPECT_THAT(lines, ElementsAre("hf.co/user/repo:Q4_K_M ok", HasSubstr("bad:json: the manifest "),
                                 HasSubstr("evil:digest: its manifest"), "gemma3:1b ok",
                                 HasSubstr("no:blob: its file"), HasSubstr("names no file in GGUF"),
                                 "someone/model:latest ok"));
  EXPECT_THAT(ListOllamaModels(Path("nowhere")), IsEmpty());
}

TEST_F(FoldersTest, SurvivesAnyManifest) {
  const std::string good = Manifest("sha256:" + kDigest);
  std::mt19937 random(1);
  for (int i = 0; i < 2'000; ++i) {
    std::string bytes = good;
    for (int changes = 1 + static_cast<int>(random() % 3); changes-- > 0;)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    Add("manifests/registry.ollama.ai/library/x/y", bytes);
    EXPECT_THAT(ListOllamaModels(Path("")), SizeIs(1));
  }
  for (const std::string& bytes :
       {std::string("[]"), std::string("{\"layers\": {}}"), std::string("{\"layers\": [1]}"),
        std::string("{\"manifests\": [[], 1, {\"layers\": [{}]}]}"), std::string(2 << 20, ' '),
        std::string(100'000, '[')}) {
    Add("manifests/registry.ollama.ai/library/x/y", bytes);
    ASSERT_THAT(ListOllamaModels(Path("")), SizeIs(1));
    EXPECT_NE(ListOllamaModels(Path(""))[0].problem, "");
  }
}

TEST_F(FoldersTest, ReadsLmStudiosFolders) {
  Add("u/r/m-Q4_K_M.gguf", "GGUF");
  Add("u/r/model.gguf", "GGUF");
  Add("u/r/mmproj-model-f16.gguf", "GGUF");
  Add("u/r/big/b-Q8_0-00001-of-00002.gguf", "GGUF");
  Add("u/r/big/b-Q8_0-00002-of-00002.gguf", "GGUF");
  Add("u/stray.gguf", "GGUF");
  Add("u/r/notes.txt", "no");
  fs::create_directory_symlink(Path("u/r"), Path("u/link"));
  fs::create_directory_symlink(Path("u"), Path("u/circle"));
  std::vector<std::string> names;
  for (const LocalModel& model : ListLmStudioModels(Path(""))) {
    EXPECT_TRUE(fs::exists(model.path)) << model.path;
    if (model.name.find("circle") == std::string::npos) names.push_back(model.name);
  }
  EXPECT_THAT(names, ElementsAre("u/link:Q8_0", "u/link:Q4_K_M", "u/link:model.gguf", "u/r:Q8_0",
                                 "u/r:Q4_K_M", "u/r:model.gguf"));
}

TEST_F(FoldersTest, LooksNoDeeperThanItIsAskedTo) {
  Add("a/b/c", "deep");
  Add("a/d", "not so deep");
  Add("e", "not deep");
  EXPECT_THAT(FilesBelow(Path(""), 1), ElementsAre("e"));
  EXPECT_THAT(FilesBelow(Path(""), 2), ElementsAre("a/d", "e"));
  EXPECT_THAT(FilesBelow(Path(""), 3), ElementsAre("a/b/c", "a/d", "e"));
  EXPECT_THAT(FoldersIn(Path("")), ElementsAre("a"));
}

TEST_F(FoldersTest, ReadsSmallFilesOnly) {
  EXPECT_EQ(*ReadSmallFile(Make("a", "12345"), 5), "12345");
  EXPECT_THAT(std::string(ReadSmallFile(Path("a"), 4).status().message()),
              HasSubstr("larger than the 4 bytes"));
  EXPECT_EQ(ReadSmallFile(Path("none"), 4).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(ReadSmallFile(Path(""), 4).ok());
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(ReadSmallFile(Path("pipe"), 4).ok());
}

}  // namespace
}  // namespace inlay
