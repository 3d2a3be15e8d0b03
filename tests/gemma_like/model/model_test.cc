// The forward pass against a reference of plain loops in double, for forms of layers that no file
// with golden logits has.
#include "gemma_like/model/model.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "configs/test_twins.h"
#include "gemma_like/config_entry.h"
#include "gemma_like/files/synth.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/gemma_like/reference.h"
#include "tests/must.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

// As Mamba-Codestral: eight groups, each with a norm of its own, and an output matrix.
struct EightGroups : Mamba2Family<Mamba2FamilyShape{.vocab_size = 64,
                                                    .model_dim = 64,
                                                    .layers = 2,
                                                    .head_dim = 8,
                                                    .state_dim = 16,
                                                    .groups = 8}> {
  static constexpr std::string_view kName = "eight-groups";
  static constexpr bool kTiedOutput = false;
};

// As Gemma 3 27b: a query scalar that is not the head dim, and scaled positions.
struct QueryScalar : Gemma3<Gemma3Shape{.vocab_size = 64,
                                        .model_dim = 96,
                                        .layers = 3,
                                        .heads = 4,
                                        .kv_heads = 2,
                                        .head_dim = 16,
                                        .hidden = 128,
                                        .window = 7,
                                        .full_every = 3,
                                        .rope_scale = 8,
                                        .query_scalar = 96 / 4}> {
  static constexpr std::string_view kName = "query-scalar";
};

template <class C>
class ModelTest : public ::testing::Test {};
using Configs = ::testing::Types<TestGranite, EightGroups, QueryScalar>;
TYPED_TEST_SUITE(ModelTest, Configs);

TYPED_TEST(ModelTest, LogitsAreThoseOfTheReference) {
  const std::string path = TempPath("model_test.gguf");
  ASSERT_TRUE(
      WriteSynth(MakeConfigEntry<TypeParam>().synth(), {.type = WeightType::kF32}, 3, path).ok());
  auto opened = GgufFile::Open(path);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const auto file = std::make_shared<const GgufFile>(*std::move(opened));
  const auto model = Must(Model<TypeParam>::Load(file, {.threads = 2}));
  std::mt19937_64 random(5);
  std::vector<int32_t> tokens(45);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random() % TypeParam::kVocabSize);
  const auto cache = Must(model->CreateCache({}, KvType::kF32));
  const std::vector<float> logits = Append(*model, *cache, tokens);
  double error = 0, norm = 0;
  const float* value = logits.data();
  for (const Doubles& row : Reference<TypeParam>(*file).Logits(tokens)) {
    for (const double expected : row) {
      error += (*value - expected) * (*value - expected);
      norm += expected * expected;
      ++value;
    }
  }
  ASSERT_EQ(value, logits.data() + logits.size());
  EXPECT_LT(error / norm, 1e-10);
  this->RecordProperty("nmse", std::to_string(error / norm));
  // As many threads as there are cores.
  EXPECT_EQ(Model<TypeParam>::PlanMemory(*file, {.threads = 0}).total(),
            Model<TypeParam>::PlanMemory(*file, {.threads = UsableCores()}).total());
  const auto all = Must(Model<TypeParam>::Load(file, {.threads = 0}));
  const auto again = Must(all->CreateCache({}, KvType::kF32));
  EXPECT_EQ(Append(*all, *again, tokens), logits);
}

}  // namespace
}  // namespace inlay
