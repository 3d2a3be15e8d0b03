// Files with random weights: what they hold, and how large it is.
#include "gemma_like/files/synth.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "configs/gemma3.h"
#include "configs/gemma4.h"
#include "configs/test_gemma4.h"
#include "configs/test_nemotron_h.h"
#include "configs/test_twins.h"
#include "gemma_like/chat/chat.h"
#include "gemma_like/files/describe_synth.h"
#include "gemma_like/files/made_up_vocabulary.h"
#include "gemma_like/load_model.h"
#include "io/gguf/gguf.h"
#include "ops/quant/dequantize.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

std::string Bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The root mean square of a tensor's values.
double Size(const GgufFile& file, const std::string& name) {
  const GgufTensor* tensor = file.FindTensor(name);
  if (tensor == nullptr) return 0;
  const size_t cols = tensor->dims[0];
  const size_t rows = tensor->num_elements() / cols;
  const WeightMatrix matrix{tensor->data.data(), tensor->type, rows, cols};
  std::vector<float> row(cols);
  double sum = 0;
  for (size_t r = 0; r < rows; ++r) {
    DequantizeRow(matrix, r, row.data());
    for (const float value : row) sum += double{value} * value;
  }
  return std::sqrt(sum / static_cast<double>(rows * cols));
}

TEST(SynthTest, SameSeedSameFile) {
  const std::string a = TempPath("synth_a.gguf");
  const std::string b = TempPath("synth_b.gguf");
  ASSERT_TRUE(WriteSynth(DescribeSynth<TestMamba2>(), {.type = WeightType::kQ8_0}, 1, a).ok());
  ASSERT_TRUE(WriteSynth(DescribeSynth<TestMamba2>(), {.type = WeightType::kQ8_0}, 1, b).ok());
  EXPECT_EQ(Bytes(a), Bytes(b));
  ASSERT_TRUE(WriteSynth(DescribeSynth<TestMamba2>(), {.type = WeightType::kQ8_0}, 2, b).ok());
  EXPECT_NE(Bytes(a), Bytes(b));
}

TEST(SynthTest, MatricesHaveTheTypeAndTheRestIsF32) {
  const std::string path = TempPath("synth_types.gguf");
  ASSERT_TRUE(
      WriteSynth(DescribeSynth<TestGranite4hMoe>(), {.type = WeightType::kQ4_K}, 1, path).ok());
  ASSERT_TRUE(LoadModel(path).ok());
  absl::StatusOr<GgufFile> file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  for (const GgufTensor& tensor : file->tensors()) {
    // The convolution and the state space layers' vectors have two dimensions too.
    const bool matrix = tensor.n_dims > 1 && !absl::StrContains(tensor.name, "ssm_conv1d") &&
                        !absl::EndsWith(tensor.name, "ssm_a") &&
                        !absl::EndsWith(tensor.name, "ssm_d") &&
                        !absl::EndsWith(tensor.name, "norm.weight") &&
                        !absl::EndsWith(tensor.name, "ffn_gate_inp.weight");
    EXPECT_EQ(tensor.type, matrix ? WeightType::kQ4_K : WeightType::kF32) << tensor.name;
  }
}

// All branches of all layers together bring twice the variance of the embedding.
template <class Config>
void ExpectStable(const std::vector<std::string>& branch_ends) {
  SCOPED_TRACE(Config::kName);
  const SynthModel model = DescribeSynth<Config>();
  double variance = 0;
  double embedding = 0;
  for (const SynthTensor& tensor : model.tensors) {
    if (tensor.name == "token_embd.weight") embedding = tensor.scale * Config::kEmbeddingScale;
    for (const std::string& end : branch_ends) {
      if (absl::EndsWith(tensor.name, end)) {
        variance += std::pow(tensor.scale * BranchMultiplier<Config>().value(), 2);
      }
    }
  }
  EXPECT_EQ(embedding, 0.5 * Config::kEmbeddingScale);
  EXPECT_NEAR(variance, 2 * embedding * embedding / Config::kModelDim, 1e-6 * variance);
}

TEST(SynthTest, BranchesAddLittle) {
  ExpectStable<TestGemma2>({"post_attention_norm.weight", "post_ffw_norm.weight"});
  ExpectStable<TestGemma3>({"post_attention_norm.weight", "post_ffw_norm.weight"});
  ExpectStable<TestGemma4E>(
      {"post_attention_norm.weight", "post_ffw_norm.weight", ".post_norm.weight"});
  ExpectStable<TestGemma4Moe>({"post_attention_norm.weight", "post_ffw_norm.weight"});
  ExpectStable<TestGranite4h>({"attn_output.weight", "ssm_norm.weight", "ffn_down.weight"});
  ExpectStable<TestGranite4hMoe>({"attn_output.weight", "ssm_norm.weight", "ffn_down_exps.weight"});
  ExpectStable<TestNemotronHMoe>({"attn_output.weight", "ssm_norm.weight", "ffn_latent_up.weight"});
  ExpectStable<TestNemotronHMoeNoLatent>(
      {"attn_output.weight", "ssm_norm.weight", "ffn_down_exps.weight"});
  ExpectStable<TestMamba2>({"ssm_norm.weight"});
}

// Each layer's part of a row is as large as a whole row of a matrix; constants are as they must be.
TEST(SynthTest, InputsOfLayersAndConstants) {
  const std::string path = TempPath("synth_inputs.gguf");
  ASSERT_TRUE(WriteSynth(DescribeSynth<TestGemma4E>(), {.type = WeightType::kF16}, 1, path).ok());
  absl::StatusOr<GgufFile> file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_NEAR(Size(*file, "per_layer_token_embd.weight"), 1 / std::sqrt(32.0), 0.01);
  const GgufTensor* divisors = file->FindTensor("rope_freqs.weight");
  ASSERT_NE(divisors, nullptr);
  ASSERT_EQ(divisors->num_elements(), 32u);
  std::vector<float> values(32);
  DequantizeRow({divisors->data.data(), divisors->type, 1, 32}, 0, values.data());
  for (size_t i = 0; i < 32; ++i) EXPECT_EQ(values[i], i < 8 ? 1.0f : 1e30f);
}

// The products of queries and keys of length d, both of deviation 1, have deviation sqrt(d).
template <class Config>
void ExpectProductsNearOne(double divisor) {
  SCOPED_TRACE(Config::kName);
  int norms = 0;
  for (const SynthTensor& tensor : DescribeSynth<Config>().tensors) {
    if (!absl::EndsWith(tensor.name, "attn_k_norm.weight")) continue;
    const double deviation = std::sqrt(static_cast<double>(tensor.dims[0])) * tensor.scale;
    EXPECT_NEAR(deviation / divisor, 1, 1e-6) << tensor.name;
    ++norms;
  }
  EXPECT_GT(norms, 0);
}

TEST(SynthTest, AttentionIsNotSharp) {
  ExpectProductsNearOne<Gemma3_270m>(16);  // divided by the root of 256
  ExpectProductsNearOne<Gemma4_E2b>(1);
  ExpectProductsNearOne<Gemma4_26b_a4b>(1);
}

// Of the text model, as llama.cpp's converter writes it.
TEST(SynthTest, Gemma4HasAsManyTensorsAsPublishedFiles) {
  // These files have three for the keys and values of layers that do not use their own.
  EXPECT_EQ(DescribeSynth<Gemma4_E2b>().tensors.size(), 601u - 3 * 20);
  EXPECT_EQ(DescribeSynth<Gemma4_E4b>().tensors.size(), 720u - 3 * 18);
  EXPECT_EQ(DescribeSynth<Gemma4_31b>().tensors.size(), 833u);
  // These have the gates and the ups of a layer's experts in one.
  EXPECT_EQ(DescribeSynth<Gemma4_26b_a4b>().tensors.size(), 658u + 30);
}

TEST(SynthTest, MadeUpVocabularyWritesEveryText) {
  const std::string path = TempPath("synth_vocabulary.gguf");
  SynthModel synth = DescribeSynth<TestGemma3>();
  ASSERT_TRUE(AddMadeUpVocabulary(synth).ok());
  ASSERT_TRUE(WriteSynth(std::move(synth), {.type = WeightType::kQ8_0}, 1, path).ok());
  absl::StatusOr<LoadedModel> model = LoadModel(path);
  ASSERT_TRUE(model.ok()) << model.status();
  const Tokenizer& tokenizer = *model->tokenizer;
  for (const std::string text : {"to be or not", "Caf\u00e9, 1599!\n"}) {
    absl::StatusOr<std::vector<int32_t>> tokens = tokenizer.Encode(text);
    ASSERT_TRUE(tokens.ok()) << tokens.status();
    EXPECT_EQ(tokenizer.Decode(*tokens), text);
  }
  // Of 512 tokens 286 and later are words of two letters, in their order.
  EXPECT_EQ(*tokenizer.Encode("aaabba"), (std::vector<int32_t>{286, 287, 313}));
}

TEST(SynthTest, MadeUpVocabularyHasTheChatsTokens) {
  const std::string path = TempPath("synth_chat.gguf");
  SynthModel synth = DescribeSynth<TestGemma3>();
  ASSERT_TRUE(AddMadeUpVocabulary(synth).ok());
  ASSERT_TRUE(WriteSynth(std::move(synth), {.type = WeightType::kQ8_0}, 1, path).ok());
  absl::StatusOr<LoadedModel> model = LoadModel(path);
  ASSERT_TRUE(model.ok()) << model.status();
  absl::StatusOr<FixedChatFormat> format =
      FixedChatFormat::Create(*model->tokenizer, model->engine->info().chat_template);
  ASSERT_TRUE(format.ok()) << format.status();
  absl::StatusOr<std::vector<int32_t>> turn = format->FirstTurn("", "a");
  ASSERT_TRUE(turn.ok()) << turn.status();
  // The last two of 512.
  EXPECT_EQ(model->tokenizer->FindSpecial("<start_of_turn>"), 510);
  EXPECT_TRUE(model->tokenizer->IsEndOfGeneration(511));
  EXPECT_EQ(turn->front(), 1);
  EXPECT_EQ((*turn)[1], 510);
}

TEST(SynthTest, MadeUpVocabularyNeedsRoomForLetters) {
  SynthModel model;
  model.tensors.push_back({.name = "token_embd.weight", .dims = {64, 285}});
  EXPECT_EQ(AddMadeUpVocabulary(model).message(),
            "a made-up vocabulary has at least 286 tokens, but the model has 285");
  model.chat_template = ChatTemplate::kGemma;
  EXPECT_EQ(AddMadeUpVocabulary(model).message(),
            "a made-up vocabulary has at least 288 tokens, but the model has 285");
}

TEST(SynthTest, ScalesAreThoseOfTheValues) {
  const std::string path = TempPath("synth_scales.gguf");
  SynthModel model = DescribeSynth<TestGranite4hMoe>();
  const std::vector<SynthTensor> tensors = model.tensors;
  ASSERT_TRUE(WriteSynth(std::move(model), {.type = WeightType::kF16}, 1, path).ok());
  absl::StatusOr<GgufFile> file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  for (const SynthTensor& tensor : tensors) {
    const double size = Size(*file, tensor.name);
    if (IsMatrix(tensor.use)) {
      const double expected = tensor.scale / std::sqrt(static_cast<double>(tensor.dims[0]));
      EXPECT_NEAR(size, expected, 0.1 * expected) << tensor.name;
    } else if (tensor.use == TensorUse::kNorm || tensor.use == TensorUse::kBranchNorm) {
      EXPECT_NEAR(size, tensor.scale, 0.1 * tensor.scale) << tensor.name;
    }
  }
  EXPECT_NEAR(Size(*file, "blk.0.ffn_gate_inp.weight"), 4 / 16.0, 0.02);
}

}  // namespace
}  // namespace inlay
