#include "io/hub/choose_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"

namespace inlay {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The chosen paths, joined by a space; or the error.
std::string Choice(const std::vector<std::string>& paths, const std::string& type = "") {
  const auto chosen = ChooseFiles(paths, type, "user/repo");
  if (!chosen.ok()) return chosen.status().ToString();
  std::vector<std::string> names;
  for (const size_t i : *chosen) names.push_back(paths[i]);
  return absl::StrJoin(names, " ");
}

TEST(ChooseFile, KnowsTheTypesInNames) {
  EXPECT_EQ(QuantizationOf("gemma-3-1b-it-Q4_K_M.gguf"), "Q4_K_M");
  EXPECT_EQ(QuantizationOf("tinyllama-1.1b-chat-v1.0.q8_0.gguf"), "Q8_0");
  EXPECT_EQ(QuantizationOf("BF16/Qwen-BF16-00001-of-00002.gguf"), "BF16");
  EXPECT_EQ(QuantizationOf("Q6_K/model.gguf"), "Q6_K");
  EXPECT_EQ(QuantizationOf("model_IQ4_XS.gguf"), "IQ4_XS");
  EXPECT_EQ(QuantizationOf("gemma-UD-Q4_K_XL.gguf"), "UD-Q4_K_XL");
  EXPECT_EQ(QuantizationOf("gpt-oss-20b-mxfp4.gguf"), "MXFP4");
  EXPECT_EQ(QuantizationOf("model-f16.gguf"), "F16");
  EXPECT_EQ(QuantizationOf("model-IQ4_XS-4.16bpw.gguf"), "IQ4_XS");
  for (const char* path : {"model.gguf", "qwen-q.gguf", "q10x.gguf", "gemma-3-4b.gguf", ".gguf"})
    EXPECT_EQ(QuantizationOf(path), "") << path;
}

TEST(ChooseFile, PrefersQ4KMThenWhatIsNearest) {
  std::vector<std::string> paths;
  for (const char* type : {"F16", "Q2_K", "Q8_0", "Q3_K_M", "Q6_K", "Q5_K_M", "IQ4_XS", "Q5_0",
                           "Q4_0", "Q4_K_S", "Q4_1", "UD-Q4_K_XL", "UD-Q4_K_M", "Q4_K_M"})
    paths.push_back(std::string("m-") + type + ".gguf");
  // Of all the last; without it the one before ...
  std::vector<std::string> order;
  for (std::vector<std::string> left = paths; !left.empty();) {
    order.push_back(Choice(left));
    std::erase(left, order.back());
  }
  EXPECT_THAT(order,
              testing::ElementsAre("m-Q4_K_M.gguf", "m-UD-Q4_K_M.gguf", "m-Q4_1.gguf",
                                   "m-UD-Q4_K_XL.gguf", "m-Q4_0.gguf", "m-Q4_K_S.gguf",
                                   "m-IQ4_XS.gguf", "m-Q5_0.gguf", "m-Q5_K_M.gguf", "m-Q3_K_M.gguf",
                                   "m-Q6_K.gguf", "m-Q2_K.gguf", "m-Q8_0.gguf", "m-F16.gguf"));
  EXPECT_EQ(Choice({"model.gguf", "model-F32.gguf"}), "model-F32.gguf");
  EXPECT_EQ(Choice({"b.gguf", "a.gguf", "aa.gguf"}), "a.gguf");
}

TEST(ChooseFile, TakesTheTypeThatIsAskedFor) {
  const std::vector<std::string> paths = {"m-Q4_K_M.gguf", "m-IQ4_XS.gguf",   "m-UD-Q8_K_XL.gguf",
                                          "m-Q8_0.gguf",   "m-Special1.gguf", "sub/x.gguf"};
  EXPECT_EQ(Choice(paths, "q8_0"), "m-Q8_0.gguf");
  EXPECT_EQ(Choice(paths, "Q8_K_XL"), "m-UD-Q8_K_XL.gguf");
  EXPECT_EQ(Choice(paths, "ud-q8_k_xl"), "m-UD-Q8_K_XL.gguf");
  EXPECT_EQ(Choice(paths, "special1"), "m-Special1.gguf");
  EXPECT_EQ(Choice(paths, "sub/x.gguf"), "sub/x.gguf");
  // No part of a type is one.
  for (const char* type : {"Q4_K", "Q4_XS", "Q8", "K_M", "x.gguf", "Q5_K_M"}) {
    EXPECT_THAT(Choice(paths, type),
                AllOf(HasSubstr("NOT_FOUND: user/repo has no '"),
                      HasSubstr("it has IQ4_XS, Q4_K_M, Q8_0, UD-Q8_K_XL, m-Special1.gguf, sub/x")))
        << type;
  }
}

TEST(ChooseFile, NeverTakesWhatIsNoModel) {
  EXPECT_EQ(Choice({"mmproj-Q4_K_M.gguf", "m-mmproj-f16.gguf", "MMPROJ.gguf", "imatrix.gguf",
                    "mtp-m-Q4_K_M.gguf", "README.md", "model.safetensors", "m-F16.gguf"}),
            "m-F16.gguf");
  EXPECT_THAT(Choice({"mmproj-Q4_K_M.gguf"}), HasSubstr("has no model in GGUF"));
  EXPECT_THAT(Choice({"mmproj-Q4_K_M.gguf", "a.gguf"}, "mmproj-Q4_K_M.gguf"), HasSubstr("has no"));
  EXPECT_THAT(Choice({}), HasSubstr("has no model in GGUF"));
}

TEST(ChooseFile, TakesAllParts) {
  const std::vector<std::string> paths = {
      "m-Q4_K_M-00003-of-00003.gguf", "m-Q4_K_M-00001-of-00003.gguf",
      "m-Q4_K_M-00002-of-00003.gguf", "m-Q8_0-00001-of-00002.gguf", "m-Q8_0-00002-of-00003.gguf"};
  EXPECT_EQ(Choice(paths), paths[1] + " " + paths[2] + " " + paths[0]);
  EXPECT_EQ(Choice(paths, paths[2]), paths[1] + " " + paths[2] + " " + paths[0]);
  EXPECT_THAT(Choice(paths, "Q8_0"), AllOf(HasSubstr("DATA_LOSS"), HasSubstr("1 of the 2 parts")));
}

TEST(ChooseFile, ListsAModelByItsTypeOrPath) {
  EXPECT_EQ(ListedType("sub/m-q4_k_m.gguf"), "Q4_K_M");
  EXPECT_EQ(ListedType("sub/m.gguf"), "sub/m.gguf");
  EXPECT_EQ(ListedType("m-Q8_0-00001-of-00002.gguf"), "Q8_0");
  for (const char* path : {"m-Q8_0-00002-of-00002.gguf", "mmproj-F16.gguf", "config.json", ""})
    EXPECT_EQ(ListedType(path), std::nullopt) << path;
}

}  // namespace
}  // namespace inlay
