// A file of a test's config that is changed as other converters write it.
#ifndef INLAY_TESTS_GEMMA_LIKE_MODEL_FOREIGN_FILE_H_
#define INLAY_TESTS_GEMMA_LIKE_MODEL_FOREIGN_FILE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gemma_like/files/quantization.h"
#include "gemma_like/files/synth.h"
#include "gemma_like/load_model.h"
#include "gemma_like/registry.h"
#include "io/gguf/gguf.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/io/gguf/changed_gguf.h"
#include "tests/must.h"
#include "tests/temp_folder.h"

namespace inlay {

class ForeignFilesTest : public ::testing::Test {
 protected:
  // A file with random weights for a test's config.
  std::string Plain(absl::string_view config, absl::string_view type = "Q8_0") {
    std::string path = folder_.Path(absl::StrCat(config, "-", type));
    SynthModel model = Must(FindConfig(config))->synth();
    EXPECT_TRUE(WriteSynth(std::move(model), *Quantization::Parse(type), 3, path).ok());
    return path;
  }

  std::string Changed(const std::string& plain, const GgufChange& change) {
    std::string path = folder_.Path("changed");
    WriteChanged(Must(GgufFile::Open(plain)), change, path);
    return path;
  }

  // Returns what the changed file's model is run without.
  static std::string ExpectTheSame(const std::string& plain, const std::string& changed) {
    const absl::StatusOr<LoadedModel> model = LoadModel(changed);
    EXPECT_TRUE(model.ok()) << model.status();
    if (!model.ok()) return "";
    const std::vector<float> expected = LogitsOf(Must(LoadModel(plain)));
    const std::vector<float> got = LogitsOf(*model);
    EXPECT_EQ(got.size(), expected.size());
    EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0);
    return model->ignored;
  }

  static void ExpectRefused(const std::string& path, const std::string& sentence) {
    EXPECT_THAT(std::string(LoadModel(path).status().message()),
                ::testing::AllOf(::testing::HasSubstr(path), ::testing::HasSubstr(sentence)));
  }

  const TempFolder folder_;
};

inline void Rename(const std::string& suffix, const std::string& to,
                   std::vector<StoredTensor>& tensors) {
  int renamed = 0;
  for (StoredTensor& tensor : tensors) {
    if (!absl::EndsWith(tensor.name, suffix)) continue;
    tensor.name.replace(tensor.name.size() - suffix.size(), suffix.size(), to);
    ++renamed;
  }
  EXPECT_GT(renamed, 0);
}

inline void AddTensor(const std::string& name, std::vector<StoredTensor>& tensors) {
  tensors.push_back({name, {4}, WeightType::kF32, std::string(16, '\0')});
}

}  // namespace inlay

#endif  // INLAY_TESTS_GEMMA_LIKE_MODEL_FOREIGN_FILE_H_
