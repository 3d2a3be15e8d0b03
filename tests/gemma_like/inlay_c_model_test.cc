// The C API: how models are loaded, and what becomes of one whose file changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "io/gguf/gguf.h"
#include "ops/cpu/cpu_target.h"
#include "tests/gemma_like/inlay_c_fixture.h"
#include "tests/io/gguf/changed_gguf.h"
#include "tests/must.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

TEST_F(InlayCTest, ABatchMayBeSmall) {
  const inlay_model_options small = {sizeof(small), 1, 0, 8};
  inlay_model* model = nullptr;
  ASSERT_EQ(inlay_load_model(kBardPath, &small, &model), INLAY_OK) << inlay_last_error();
  inlay_model_info info = {};
  info.size = sizeof(info);
  ASSERT_EQ(inlay_get_model_info(model, &info), INLAY_OK);
  EXPECT_EQ(info.max_batch, 8u);
  inlay_free_model(model);
  const inlay_model_options large = {sizeof(large), 1, 0, SIZE_MAX};
  EXPECT_ERROR(inlay_load_model(kBardPath, &large, &model), INLAY_INVALID_ARGUMENT,
               "max_batch is 18446744073709551615");
}

TEST_F(InlayCTest, TheInstructionSetIsChosenBeforeModels) {
  EXPECT_ERROR(inlay_set_target(RunnableTargets().back().c_str()), INLAY_FAILED_PRECONDITION,
               "there are models");
  inlay_free_model(model_);
  model_ = nullptr;
  EXPECT_EQ(inlay_set_target(nullptr), INLAY_FAILED_PRECONDITION) << "a conversation has it";
  inlay_free_cache(cache_);
  cache_ = nullptr;
  const std::string best = ChosenTarget();
  EXPECT_ERROR(inlay_set_target("PDP11"), INLAY_INVALID_ARGUMENT, RunnableTargets().back());
  EXPECT_EQ(ChosenTarget(), best);
  for (const std::string& name : RunnableTargets()) {
    ASSERT_EQ(inlay_set_target(name.c_str()), INLAY_OK) << inlay_last_error();
    EXPECT_EQ(ChosenTarget(), name);
  }
  // Nothing that fails to load keeps it.
  EXPECT_EQ(inlay_load_model("LICENSE", nullptr, &model_), INLAY_INVALID_ARGUMENT);
  EXPECT_EQ(inlay_set_target(""), INLAY_OK) << inlay_last_error();
  EXPECT_EQ(ChosenTarget(), best);
}

TEST_F(InlayCTest, TellsWhatTheModelIsRunWithout) {
  char text[200] = "";
  size_t size = 9;
  ASSERT_EQ(inlay_model_notes(model_, text, sizeof(text), &size), INLAY_OK);
  EXPECT_STREQ(text, "");
  EXPECT_EQ(size, 0u);
  const std::string path = TempPath("sees.gguf");
  WriteChanged(Must(GgufFile::Open(kBardPath)),
               {.tensors =
                    [](std::vector<StoredTensor>& tensors) {
                      tensors.push_back({"v.patch_embd.bias", {1}, WeightType::kF32, "0000"});
                    }},
               path);
  inlay_model* model = nullptr;
  ASSERT_EQ(inlay_load_model(path.c_str(), nullptr, &model), INLAY_OK) << inlay_last_error();
  std::remove(path.c_str());
  ASSERT_EQ(inlay_model_notes(model, text, sizeof(text), &size), INLAY_OK);
  EXPECT_STREQ(text, "ignoring 1 tensor of vision (v.)");
  EXPECT_EQ(inlay_model_notes(model, text, size, &size), INLAY_OUT_OF_RANGE);
  inlay_free_model(model);
}

TEST_F(InlayCTest, SurvivesAFileThatShrinks) {
  inlay_guard_mapped_files();
  const std::string path = TempPath("shrinks.gguf");
  std::ofstream(path) << std::ifstream(kBardPath).rdbuf();
  inlay_model* model = nullptr;
  inlay_cache* cache = nullptr;
  ASSERT_EQ(inlay_load_model(path.c_str(), nullptr, &model), INLAY_OK) << inlay_last_error();
  ASSERT_EQ(inlay_create_cache(model, nullptr, &cache), INLAY_OK);
  ASSERT_EQ(truncate(path.c_str(), 8192), 0);
  EXPECT_ERROR(inlay_append(cache, prompt_.data(), prompt_.size(), nullptr), INLAY_DATA_LOSS,
               "shorter");
  EXPECT_EQ(inlay_cache_length(cache), 0u);
  inlay_free_cache(cache);
  inlay_free_model(model);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace inlay
