// What the layers of a config say of its files.
#include "configs/metadata.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "configs/bard.h"
#include "configs/gemma2.h"
#include "configs/test_twins.h"

namespace inlay {
namespace {

// The visitor that keeps all that it is told.
struct Recorder {
  std::map<std::string, double> numbers;
  std::map<std::string, std::vector<int64_t>> lists;
  int told = 0;

  void Int(std::string_view key, int64_t value, std::optional<int64_t> = {}) {
    Float(key, static_cast<double>(value));
  }
  void Float(std::string_view key, double value, std::optional<double> = {},
             std::optional<double> = {}) {
    numbers[std::string(key)] = value;
    ++told;
  }
  void Flag(std::string_view key, bool value, std::optional<bool> = {}) { Float(key, value); }
  void Text(std::string_view, std::string_view, std::optional<std::string_view> = {},
            std::optional<std::string_view> = {}) {}
  template <size_t n>
  void Ints(std::string_view key, const std::array<int64_t, n>& values) {
    lists[std::string(key)] = std::vector<int64_t>(values.begin(), values.end());
    ++told;
  }
  template <size_t n>
  void Texts(std::string_view, const std::array<std::string_view, n>&) {}
  void Period(std::string_view key, int, int period, std::optional<int> = {}) { Int(key, period); }
  void VocabSize(int value) { Int("vocab_size", value); }
};

template <class Config>
Recorder Tell() {
  Recorder recorder;
  Config::template Metadata<Config>(recorder);
  return recorder;
}

// Redefinitions of what their families say.
struct SofterGemma : TestGemma2 {
  static constexpr float kLogitSoftCap = 20.0f;
  static constexpr float kNormEpsilon = 1e-3f;
};
struct LargerBard : Bard {
  static constexpr float kEmbeddingScale = 8.0f;
  using Layers = Chain<Bard::Layers, Bard::Full>;
};

TEST(MetadataTest, WhatACheckpointRedefinesIsTold) {
  EXPECT_EQ(Tell<TestGemma2>().numbers["final_logit_softcapping"], 30);
  EXPECT_EQ(Tell<SofterGemma>().numbers["final_logit_softcapping"], 20);
  EXPECT_FLOAT_EQ(
      static_cast<float>(Tell<SofterGemma>().numbers["attention.layer_norm_rms_epsilon"]), 1e-3f);
  EXPECT_EQ(Tell<LargerBard>().numbers["embedding_scale"], 8);
  EXPECT_EQ(Tell<LargerBard>().numbers["block_count"], 9);
  EXPECT_EQ(Tell<LargerBard>().lists["attention.head_count_kv"].size(), 9u);
}

// Two widths of MLP, and layers without one between them.
struct Widths : ConfigDefaults {
  static constexpr std::string_view kName = "widths";
  static constexpr std::string_view kArchitecture = "widths";
  static constexpr int kVocabSize = 16;
  static constexpr int kModelDim = 8;
  static constexpr float kNormEpsilon = 1e-6f;
  using Attending =
      Mixers<FullAttention<AttentionShape{.heads = 4, .kv_heads = 2, .head_dim = 2}, Rope{}>>;
  template <int kHidden>
  using With = Layer<PreNorm, Attending, GatedMlp<kHidden, Activation::kSilu>>;
  using Without = Layer<PreNorm, Attending>;
  using Layers = Chain<With<16>, Without, With<32>>;
  template <class Config>
  static void Metadata(auto& v) {
    CommonMetadata<Config>(v);
  }
};

TEST(MetadataTest, AKeyOfEachLayerHasAllLayersValues) {
  Recorder told = Tell<Widths>();
  EXPECT_EQ(told.lists["feed_forward_length"], (std::vector<int64_t>{16, kAnyValue, 32}));
  EXPECT_EQ(told.numbers["attention.head_count_kv"], 2) << "one number where all are equal";
  EXPECT_EQ(told.lists.count("attention.head_count_kv"), 0u);
}

TEST(MetadataTest, EachKeyIsToldOnce) {
  for (Recorder told : {Tell<Bard>(), Tell<TestGranite4hMoe>(), Tell<Widths>()}) {
    EXPECT_EQ(told.told, static_cast<int>(told.numbers.size() + told.lists.size()));
  }
}

TEST(MetadataTest, KeysThatCannotBeComparedAreAnError) {
  metadata_internal::AgreementCheck check;
  std::deque<std::string> keys;  // which stay where they are
  while (check.has_room() && keys.size() < 1000) {
    keys.push_back("key " + std::to_string(keys.size()));
    check.Int(keys.back(), 1);
    check.Int(keys.front(), 1);  // is there already and takes no room
  }
  EXPECT_EQ(keys.size(), 129u);
  EXPECT_TRUE(check.agrees());
  check.Int("key 1", 2);
  EXPECT_FALSE(check.agrees());
}

TEST(MetadataTest, BranchMultiplierIsThatOfAllBranches) {
  EXPECT_EQ(BranchMultiplier<Bard>(), 1.0f);
  EXPECT_EQ(BranchMultiplier<TestGranite4h>(), 0.22f);
}

}  // namespace
}  // namespace inlay
