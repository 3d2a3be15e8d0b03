#include "gemma_like/model/file_sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "gemma_like/load_model.h"
#include "io/gguf/gguf.h"
#include "io/gguf/gguf_writer.h"
#include "tests/gemma_like/model/metadata_file.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/io/gguf/changed_gguf.h"
#include "tests/must.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

FileSampling Read(const std::function<void(GgufWriter&)>& add_keys) {
  GgufWriter writer;
  writer.SetString("general.architecture", "none");
  add_keys(writer);
  const GgufFile file = Must(GgufFile::Open(WriteFile(writer)));
  return ReadFileSampling(file, {.temperature = 0.25f, .top_k = 7, .top_p = 0.5f, .min_p = 0.125f});
}

TEST(FileSamplingTest, WhatTheFileDoesNotSayIsTheConfigs) {
  const FileSampling none = Read([](GgufWriter&) {});
  EXPECT_EQ(none.defaults.temperature, 0.25f);
  EXPECT_EQ(none.defaults.top_k, 7);
  EXPECT_EQ(none.defaults.top_p, 0.5f);
  EXPECT_EQ(none.defaults.min_p, 0.125f);
  EXPECT_EQ(none.defaults.repeat_penalty, 1.0f);
  EXPECT_THAT(none.ignored_keys, IsEmpty());
  const FileSampling one =
      Read([](GgufWriter& w) { w.SetFloat32("general.sampling.temp", 0.75f); });
  EXPECT_EQ(one.defaults.temperature, 0.75f);
  EXPECT_EQ(one.defaults.top_k, 7);
}

TEST(FileSamplingTest, EverySettingIsRead) {
  const FileSampling read = Read([](GgufWriter& w) {
    w.SetInt32("general.sampling.temp", 1);  // writers differ in the types
    w.SetInt32("general.sampling.top_k", 20);
    w.SetFloat32("general.sampling.top_p", 0.75f);
    w.SetFloat32("general.sampling.min_p", 0.0f);
    w.SetFloat32("general.sampling.penalty_repeat", 1.25f);
    w.SetInt32("general.sampling.penalty_last_n", 128);
    w.SetInt32("general.sampling.mirostat", 0);
    w.SetFloat32("general.sampling.mirostat_tau", 5.0f);
    w.SetFloat32("general.sampling.xtc_probability", 0.0f);
  });
  EXPECT_EQ(read.defaults.temperature, 1.0f);
  EXPECT_EQ(read.defaults.top_k, 20);
  EXPECT_EQ(read.defaults.top_p, 0.75f);
  EXPECT_EQ(read.defaults.min_p, 0.0f);
  EXPECT_EQ(read.defaults.repeat_penalty, 1.25f);
  EXPECT_EQ(read.defaults.repeat_last_n, 128);
  EXPECT_THAT(read.ignored_keys, IsEmpty());
}

TEST(FileSamplingTest, NumbersBelowZeroMeanAll) {
  const FileSampling read = Read([](GgufWriter& w) {
    w.SetInt32("general.sampling.top_k", -1);
    w.SetInt32("general.sampling.penalty_last_n", -1);
  });
  EXPECT_EQ(read.defaults.top_k, 0);
  EXPECT_EQ(read.defaults.repeat_last_n, std::numeric_limits<int>::max());
  EXPECT_THAT(read.ignored_keys, IsEmpty());
}

TEST(FileSamplingTest, WhatCannotBeUsedIsIgnoredAndNamed) {
  const FileSampling read = Read([](GgufWriter& w) {
    w.SetFloat32("general.sampling.temp", std::numeric_limits<float>::quiet_NaN());
    w.SetFloat32("general.sampling.top_k", 1.5f);
    w.SetFloat32("general.sampling.top_p", 2.0f);
    w.SetString("general.sampling.min_p", "0.1");
    w.SetInt32("general.sampling.penalty_last_n", -2);
    w.SetInt32("general.sampling.mirostat", 2);
    w.SetFloat32("general.sampling.xtc_probability", 0.5f);
    w.SetString("general.sampling.sequence", "top_k;temperature");
  });
  EXPECT_EQ(read.defaults.temperature, 0.25f);
  EXPECT_EQ(read.defaults.top_k, 7);
  EXPECT_EQ(read.defaults.top_p, 0.5f);
  EXPECT_EQ(read.defaults.min_p, 0.125f);
  EXPECT_EQ(read.defaults.repeat_last_n, 64);
  EXPECT_THAT(
      read.ignored_keys,
      ElementsAre(HasSubstr("general.sampling.temp (temperature is nan, not between 0 and 100)"),
                  HasSubstr("general.sampling.top_k (1.5"),
                  "general.sampling.top_p (top-p is 2, not above 0 and at most 1)",
                  HasSubstr("general.sampling.min_p ("),
                  HasSubstr("general.sampling.penalty_last_n (repeat-last-n is -2"),
                  "general.sampling.mirostat (2)", HasSubstr("general.sampling.xtc_probability ("),
                  HasSubstr("general.sampling.sequence (")));
}

TEST(FileSamplingTest, TheLoadedModelHasItsSettings) {
  const GgufFile bard = Must(GgufFile::Open(kBardPath));
  const std::string path = TempPath("sampling.gguf");
  WriteChanged(bard,
               {.add_keys =
                    [](GgufWriter& w) {
                      w.SetFloat32("general.sampling.temp", 0.5f);
                      w.SetInt32("general.sampling.mirostat", 1);
                    }},
               path);
  const LoadedModel model = Must(LoadModel(path));
  EXPECT_EQ(model.engine->info().sampling.temperature, 0.5f);
  EXPECT_EQ(model.ignored, "the key general.sampling.mirostat (1)");
}

}  // namespace
}  // namespace inlay
