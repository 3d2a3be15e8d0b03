// Files that lack what their config has, or store it in another form, and run all the same: each
// gives the bits of the file that has it. Beside them, keys that must not be overlooked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gemma_like/files/pack.h"
#include "gemma_like/load_model.h"
#include "gemma_like/model/memory_plan.h"
#include "gemma_like/registry.h"
#include "io/gguf/gguf.h"
#include "io/gguf/gguf_writer.h"
#include "ops/team.h"
#include "tests/gemma_like/embedding_file.h"
#include "tests/gemma_like/model/foreign_file.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/gemma_like/ranks/ranked_file.h"
#include "tests/io/gguf/changed_gguf.h"
#include "tests/must.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void RemoveOutput(std::vector<StoredTensor>& tensors) {
  EXPECT_EQ(std::erase_if(
                tensors, [](const StoredTensor& tensor) { return tensor.name == "output.weight"; }),
            1u);
}

// Removes all tensors with this end.
void Remove(const std::string& end, std::vector<StoredTensor>& tensors) {
  const size_t before = tensors.size();
  std::erase_if(tensors,
                [&](const StoredTensor& tensor) { return absl::EndsWith(tensor.name, end); });
  EXPECT_LT(tensors.size(), before) << end;
}

// Gives all tensors of F32 with this end one value.
void Fill(const std::string& end, float value, std::vector<StoredTensor>& tensors) {
  for (StoredTensor& tensor : tensors) {
    if (!absl::EndsWith(tensor.name, end)) continue;
    ASSERT_EQ(tensor.type, WeightType::kF32);
    for (size_t at = 0; at < tensor.data.size(); at += sizeof(value))
      std::memcpy(tensor.data.data() + at, &value, sizeof(value));
  }
}

class LackingFilesTest : public ForeignFilesTest {
 protected:
  // A copy with this key in place of the file's own.
  std::string WithKey(const std::string& plain, const std::string& key,
                      const std::function<void(GgufWriter&)>& set) {
    return Changed(plain, {.without_keys = {key}, .add_keys = set});
  }

  // `with` and `without` tensors of this end: the same bits, also packed.
  void ExpectNotNeeded(const std::string& config, const std::string& end, float neutral) {
    SCOPED_TRACE(config);
    const std::string plain = Plain(config), with = folder_.Path("with");
    WriteChanged(Must(GgufFile::Open(plain)),
                 {.tensors = [&](auto& tensors) { Fill(end, neutral, tensors); }}, with);
    const std::string without =
        Changed(plain, {.tensors = [&](auto& tensors) { Remove(end, tensors); }});
    ExpectTheSame(with, without);
    Team team(2);
    const std::string packed = folder_.Path("packed");
    ASSERT_TRUE(WritePacked(Must(GgufFile::Open(without)), team, packed).ok());
    ExpectTheSame(with, packed);
    // All layers of a model have it, or none.
    std::string removed;
    const std::string some = Changed(plain, {.tensors = [&](std::vector<StoredTensor>& tensors) {
                                       const auto found = std::find_if(
                                           tensors.begin(), tensors.end(), [&](const auto& tensor) {
                                             return absl::EndsWith(tensor.name, end);
                                           });
                                       removed = found->name;
                                       tensors.erase(found);
                                     }});
    ExpectRefused(some, absl::StrCat("has no tensor '", removed, "'"));
  }
};

TEST_F(LackingFilesTest, OtherScalingsOfPositionsAreRefused) {
  const std::string plain = Plain("test-gemma3"), key = "gemma3.rope.scaling.type";
  for (const char* type : {"yarn", "longrope"}) {
    ExpectRefused(WithKey(plain, key, [&](GgufWriter& w) { w.SetString(key, type); }),
                  absl::StrCat(": ", key, " is '", type, "' but config test-gemma3 has 'none'"));
  }
  for (const char* type : {"none", "linear"})
    ExpectTheSame(plain, WithKey(plain, key, [&](GgufWriter& w) { w.SetString(key, type); }));
  const std::string factor = "gemma3.rope.scaling.attn_factor";
  ExpectTheSame(plain, WithKey(plain, factor, [](GgufWriter&) {}));
  ExpectRefused(WithKey(plain, factor, [&](GgufWriter& w) { w.SetFloat32(factor, 1.5f); }),
                ": gemma3.rope.scaling.attn_factor is 1.5 but config test-gemma3 has 1");
  // The name that the factor had in old files, which may lack the other one.
  const auto scale_linear = [&](float scale) {
    return WithKey(plain, "gemma3.rope.scaling.factor",
                   [&](GgufWriter& w) { w.SetFloat32("gemma3.rope.scale_linear", scale); });
  };
  ExpectTheSame(plain, scale_linear(1));
  ExpectRefused(scale_linear(2), ": gemma3.rope.scale_linear is 2 but config test-gemma3 has 1");
}

TEST_F(LackingFilesTest, AContextWithoutTokensIsRefused) {
  const std::string plain = Plain("test-gemma3"), key = "gemma3.context_length";
  const auto with = [&](uint64_t tokens) {
    return WithKey(plain, key, [&](GgufWriter& w) { w.SetUint64(key, tokens); });
  };
  ExpectRefused(with(0),
                ": gemma3.context_length is 0, not a number of tokens from 1 to 2147483647");
  ExpectRefused(with(uint64_t{1} << 31), ": gemma3.context_length is 2147483648, not a number");
  ExpectRefused(WithKey(plain, key, [&](GgufWriter& w) { w.SetString(key, "long"); }),
                ": gemma3.context_length is 'long', not a number of tokens");
  ExpectTheSame(plain, with(1));
  ExpectTheSame(plain, with((uint64_t{1} << 31) - 1));
}

// A fine-tune that was saved with tied matrices.
TEST_F(LackingFilesTest, TheEmbeddingReplacesAnOutputMatrix) {
  const std::string plain = Plain("test-falcon-h1"), with = folder_.Path("with");
  WriteChanged(Must(GgufFile::Open(plain)),
               {.tensors =
                    [](std::vector<StoredTensor>& tensors) {
                      RemoveOutput(tensors);
                      StoredTensor output = *std::find_if(
                          tensors.begin(), tensors.end(),
                          [](const auto& tensor) { return tensor.name == "token_embd.weight"; });
                      output.name = "output.weight";
                      tensors.push_back(output);
                    }},
               with);
  const std::string tied =
      Changed(plain, {.tensors = [](auto& tensors) { RemoveOutput(tensors); }});
  ExpectTheSame(with, tied);
  const LoadedModel model = Must(LoadModel(tied));
  EXPECT_THAT(model.notes, ElementsAre(HasSubstr("token_embd.weight is used in its place")));
  EXPECT_THAT(Must(LoadModel(with)).notes, IsEmpty());
  const GgufFile file = Must(GgufFile::Open(tied)), with_file = Must(GgufFile::Open(with));
  const ConfigEntry& entry = *Must(FindConfig(file));
  EXPECT_EQ(entry.memory(file, {}).weights, entry.memory(with_file, {}).weights);
  // A packed file has the embedding packed as its output.
  Team team(2);
  const std::string packed = folder_.Path("packed");
  ASSERT_TRUE(WritePacked(file, team, packed).ok());
  ExpectTheSame(with, packed);
  EXPECT_THAT(Must(LoadModel(packed)).notes, IsEmpty());
  const RankedFile ranked(2, tied);
  ASSERT_TRUE(ranked.model().ok()) << ranked.model().status();
  EXPECT_EQ(LogitsOf(*ranked.model()), LogitsOf(model));
}

// Integers that are 0 or 1, of any type; and a period where others have a flag for each layer.
TEST_F(LackingFilesTest, FlagsOfLayersAsNumbers) {
  const std::string key = "gemma3.attention.sliding_window_pattern", plain = Plain("test-gemma3");
  const auto gemma3 = [&](const std::vector<int32_t>& flags) {
    return WithKey(plain, key, [&](GgufWriter& w) { w.SetInt32s(key, flags); });
  };
  ExpectTheSame(plain, gemma3({1, 1, 1, 1, 1, 0}));
  for (const std::vector<int32_t>& wrong :
       {std::vector<int32_t>{1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 2, 0}, {1, 1, 1, 1, 1, 0, 1}}) {
    ExpectRefused(gemma3(wrong), absl::StrCat(": ", key, " is ["));
  }
  const std::string key4 = "gemma4.attention.sliding_window_pattern", plain4 = Plain("test-gemma4");
  const GgufFile file4 = Must(GgufFile::Open(plain4));
  const GgufValue& flags4 = *file4.Find(key4);
  std::vector<int32_t> numbers;
  for (size_t i = 0; i < flags4.size(); ++i) numbers.push_back(*flags4.BoolAt(i) ? 1 : 0);
  const auto gemma4 = [&](const std::function<void(GgufWriter&)>& set) {
    return WithKey(plain4, key4, set);
  };
  ExpectTheSame(plain4, gemma4([&](GgufWriter& w) { w.SetInt32s(key4, numbers); }));
  const auto period =
      static_cast<uint32_t>(std::find(numbers.begin(), numbers.end(), 0) - numbers.begin() + 1);
  ASSERT_GT(period, 1u);
  ExpectTheSame(plain4, gemma4([&](GgufWriter& w) { w.SetUint32(key4, period); }));
  for (const uint32_t wrong : {uint32_t{0}, uint32_t{1}, period + 1}) {
    ExpectRefused(gemma4([&](GgufWriter& w) { w.SetUint32(key4, wrong); }),
                  absl::StrCat(": ", key4, " is ", wrong, " but config test-gemma4 has [true"));
  }
}

// A vocabulary whose padding or rarest tokens were removed.
TEST_F(LackingFilesTest, FewerRowsThanTheConfigHas) {
  constexpr size_t kRows = 500;
  const std::string plain = Plain("test-gemma3");
  const auto with_tokens = [&](size_t tokens) {
    return Changed(plain, {.add_keys =
                               [&](GgufWriter& w) {
                                 w.SetStrings("tokenizer.ggml.tokens",
                                              std::vector<std::string>(tokens, "a"));
                               },
                           .tensors =
                               [](std::vector<StoredTensor>& tensors) {
                                 for (StoredTensor& tensor : tensors) {
                                   if (tensor.name != "token_embd.weight") continue;
                                   const size_t row = tensor.data.size() / tensor.dims[1];
                                   tensor.dims[1] = kRows;
                                   tensor.data.resize(row * kRows);
                                 }
                               }});
  };
  ExpectRefused(with_tokens(kRows + 1),
                ": gemma3.vocab_size is 500 (the rows of token_embd.weight) but config");
  const LoadedModel whole = Must(LoadModel(plain)), fewer = Must(LoadModel(with_tokens(kRows)));
  EXPECT_EQ(fewer.engine->info().vocab_size, kRows);
  const std::vector<int32_t> tokens = {1, 499, 3, 77, 256};
  const auto logits_of = [&](const LoadedModel& model) {
    return Append(*model.engine, *Must(model.engine->CreateCache({})), tokens);
  };
  const std::vector<float> expected = logits_of(whole), got = logits_of(fewer);
  for (size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_EQ(std::vector<float>(got.begin() + static_cast<ptrdiff_t>(i * kRows),
                                 got.begin() + static_cast<ptrdiff_t>((i + 1) * kRows)),
              std::vector<float>(expected.begin() + static_cast<ptrdiff_t>(i * 512),
                                 expected.begin() + static_cast<ptrdiff_t>(i * 512 + kRows)))
        << i;
  }
}

TEST_F(LackingFilesTest, BiasesOfConvolutions) {
  for (const char* config : {"test-granite4h", "test-falcon-h1", "test-nemotron-h"})
    ExpectNotNeeded(config, ".ssm_conv1d.bias", 0.0f);
}

TEST_F(LackingFilesTest, ScalesOfTheStream) {
  ExpectNotNeeded("test-gemma4", ".layer_output_scale.weight", 1.0f);
}

TEST_F(LackingFilesTest, SizesOfExpertsThatTheirTensorsSay) {
  const std::string plain = Plain("test-qwen35moe");
  EXPECT_EQ(
      ExpectTheSame(plain, Changed(plain, {.without_keys = {"qwen35moe.expert_feed_forward_length",
                                                            "qwen35moe.expert_shared_feed_forward_"
                                                            "length"}})),
      "");
}

// What the converter of llama.cpp writes unless it is told to add them.
TEST_F(LackingFilesTest, EmbeddingsWithoutTheirMatricesAreNoted) {
  const std::string path = folder_.Path("embedding");
  WriteEmbeddingFile({.dense = {2, 3}}, path);
  EXPECT_THAT(Must(LoadModel(path)).notes, IsEmpty());
  WriteEmbeddingFile({}, path);
  EXPECT_THAT(Must(LoadModel(path)).notes,
              ElementsAre(HasSubstr("there are no dense_2.weight and dense_3.weight, although keys "
                                    "tell their sizes: embeddings are not those of")));
  std::vector<std::string> keys;
  for (const char* name : {"2_feat_in", "2_feat_out", "3_feat_in", "3_feat_out"})
    keys.push_back(absl::StrCat("gemma-embedding.dense_", name));
  EXPECT_THAT(Must(LoadModel(Changed(path, {.without_keys = keys}))).notes,
              ElementsAre(HasSubstr("dense_3.weight: embeddings are not those of")));
}

}  // namespace
}  // namespace inlay
