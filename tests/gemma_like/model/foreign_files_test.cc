// Files of other converters: other keys, other names of tensors, several matrices in one, and parts
// that the text model is run without. Each gives the bits of the plain file, or is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gemma_like/files/pack.h"
#include "gemma_like/files/quantization.h"
#include "gemma_like/files/synth.h"
#include "gemma_like/files/weights_hash.h"
#include "gemma_like/load_model.h"
#include "gemma_like/model/memory_plan.h"
#include "gemma_like/registry.h"
#include "io/gguf/gguf.h"
#include "io/gguf/gguf_writer.h"
#include "tests/gemma_like/model/foreign_file.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/io/gguf/changed_gguf.h"
#include "tests/must.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

using ::testing::HasSubstr;

// Makes the tensors at `names` one, `stack`: for each of their dims[2] matrices the rows of the
// first, then those of the second and so on.
void Stack(const std::vector<std::string>& names, const std::string& stack,
           std::vector<StoredTensor>& tensors) {
  const auto find = [&](const std::string& name) {
    return std::find_if(tensors.begin(), tensors.end(),
                        [&](const StoredTensor& tensor) { return tensor.name == name; });
  };
  StoredTensor stacked = *find(names.front());
  const uint64_t count = stacked.dims.size() < 3 ? 1 : stacked.dims[2];
  stacked.name = stack;
  stacked.dims[1] = 0;
  stacked.data.clear();
  for (const std::string& name : names) stacked.dims[1] += find(name)->dims[1];
  for (uint64_t i = 0; i < count; ++i) {
    for (const std::string& name : names) {
      const std::string& data = find(name)->data;
      stacked.data += data.substr(data.size() / count * i, data.size() / count);
    }
  }
  *find(names.front()) = stacked;
  for (size_t i = 1; i < names.size(); ++i) tensors.erase(find(names[i]));
}

void StackQkv(std::vector<StoredTensor>& tensors) {
  for (int layer = 0; layer < 16; ++layer) {
    const std::string start = absl::StrCat("blk.", layer, ".attn_");
    const bool attends = std::any_of(tensors.begin(), tensors.end(), [&](const StoredTensor& t) {
      return t.name == start + "q.weight";
    });
    if (!attends) continue;
    Stack({start + "q.weight", start + "k.weight", start + "v.weight"}, start + "qkv.weight",
          tensors);
  }
}

void StackExperts(std::vector<StoredTensor>& tensors) {
  for (int layer = 0; layer < 4; ++layer) {
    const std::string start = absl::StrCat("blk.", layer, ".ffn_");
    Stack({start + "gate_exps.weight", start + "up_exps.weight"}, start + "gate_up_exps.weight",
          tensors);
  }
}

TEST_F(ForeignFilesTest, OllamasKeysOfGemma3) {
  const std::string plain = Plain("test-gemma3");
  GgufChange change{.without_keys = {"gemma3.attention.layer_norm_rms_epsilon",
                                     "gemma3.rope.freq_base", "gemma3.rope.freq_base_swa",
                                     "gemma3.rope.scaling.factor",
                                     "gemma3.final_logit_softcapping"}};
  float base = 1e6f, cap = 30;
  change.add_keys = [&](GgufWriter& writer) {
    writer.SetUint64("general.parameter_count", 999885952);
    writer.SetUint32("gemma3.mm.tokens_per_image", 256);
    writer.SetFloat32("gemma3.rope.global.freq_base", base);
    writer.SetFloat32("gemma3.rope.local.freq_base", 10000);
    writer.SetFloat32("gemma3.final_logit_softcapping", cap);
  };
  EXPECT_EQ(ExpectTheSame(plain, Changed(plain, change)),
            "the key gemma3.final_logit_softcapping (30)");
  cap = 20;
  ExpectRefused(Changed(plain, change), ": gemma3.final_logit_softcapping is 20 but config");
  cap = 30;
  base = 1e4f;
  ExpectRefused(Changed(plain, change), ": gemma3.rope.global.freq_base is 10000 but config");
}

TEST_F(ForeignFilesTest, TensorsOfOtherModelsAreIgnored) {
  const std::string plain = Plain("test-gemma3");
  EXPECT_EQ(ExpectTheSame(plain, Changed(plain, {.tensors =
                                                     [](std::vector<StoredTensor>& tensors) {
                                                       for (const char* name :
                                                            {"v.patch_embedding.weight",
                                                             "v.blk.0.attn_q.weight",
                                                             "mm.mm_input_projection.weight",
                                                             "a.blk.0.ln1.weight", "mm.a.fc.weight",
                                                             "mtp.fc.weight"}) {
                                                         AddTensor(name, tensors);
                                                       }
                                                     }})),
            "3 tensors of vision (v., mm.), 2 tensors of audio (a., mm.a.) and 1 tensor of "
            "multi-token prediction (mtp.)");
  EXPECT_EQ(ExpectTheSame(plain, Changed(plain, {.tensors =
                                                     [](std::vector<StoredTensor>& tensors) {
                                                       AddTensor("model.vision_tower.x", tensors);
                                                     }})),
            "1 tensor of vision (model.vision_tower.)");
  EXPECT_EQ(ExpectTheSame(plain, plain), "");
}

TEST_F(ForeignFilesTest, BlocksThatDraftAreIgnored) {
  const std::string plain = Plain("test-qwen35");  // of 5 blocks
  int blocks = 6, drafts = 1;
  GgufChange change{.without_keys = {"qwen35.block_count"},
                    .add_keys =
                        [&](GgufWriter& writer) {
                          writer.SetUint32("qwen35.block_count", static_cast<uint32_t>(blocks));
                          if (drafts > 0) {
                            writer.SetUint32("qwen35.nextn_predict_layers",
                                             static_cast<uint32_t>(drafts));
                          }
                        },
                    .tensors =
                        [](std::vector<StoredTensor>& tensors) {
                          AddTensor("blk.5.attn_norm.weight", tensors);
                          AddTensor("blk.5.nextn.eh_proj.weight", tensors);
                        }};
  EXPECT_EQ(ExpectTheSame(plain, Changed(plain, change)),
            "2 tensors of multi-token prediction (blk.5.)");
  drafts = 0;
  ExpectRefused(Changed(plain, change), ": qwen35.block_count is 6 but config test-qwen35 has 5");
  blocks = 5;
  ExpectRefused(Changed(plain, change),
                "has tensors 'blk.5.attn_norm.weight', 'blk.5.nextn.eh_proj.weight' that its");
  drafts = 1;  // block 4 is the model's own
  ExpectRefused(Changed(plain, change),
                ": qwen35.block_count is 5 but config test-qwen35 has 5 beside 1 for drafts");
}

// The values of that block follow those of the model in arrays of one for each.
TEST_F(ForeignFilesTest, ArraysHaveValuesOfBlocksThatDraft) {
  const std::string plain = Plain("test-nemotron-h-moe");
  std::vector<int32_t> kv_heads = {0, 0, 0, 2, 0, 0, 2}, hidden = {0, 32, 0, 0, 32, 0, 32};
  GgufChange change{
      .without_keys = {"nemotron_h_moe.block_count", "nemotron_h_moe.feed_forward_length",
                       "nemotron_h_moe.attention.head_count_kv"},
      .add_keys =
          [&](GgufWriter& writer) {
            writer.SetUint32("nemotron_h_moe.block_count", 7);
            writer.SetUint32("nemotron_h_moe.nextn_predict_layers", 1);
            writer.SetInt32s("nemotron_h_moe.attention.head_count_kv", kv_heads);
            writer.SetInt32s("nemotron_h_moe.feed_forward_length", hidden);
          },
      .tensors =
          [](std::vector<StoredTensor>& tensors) {
            AddTensor("blk.6.nextn.eh_proj.weight", tensors);
          }};
  EXPECT_EQ(ExpectTheSame(plain, Changed(plain, change)),
            "1 tensor of multi-token prediction (blk.6.)");
  hidden = {0, 32, 0, 0, 32, 32, 32};
  ExpectRefused(Changed(plain, change),
                ": nemotron_h_moe.feed_forward_length is [0, 32, 0, 0, 32, 32, 32] but config "
                "test-nemotron-h-moe has [0, 32, 0, 0, 32, 0]");
  hidden = {0, 32, 0, 0, 32, 0, 32, 32};
  ExpectRefused(Changed(plain, change), ": nemotron_h_moe.feed_forward_length is [0, 32, 0, 0, ");
}

// One row; older files have no second dimension.
TEST_F(ForeignFilesTest, TheGateOfASharedExpertWithOneDimension) {
  const std::string plain = Plain("test-qwen35moe");
  int changed = 0;
  ExpectTheSame(plain, Changed(plain, {.tensors = [&](std::vector<StoredTensor>& tensors) {
                                 for (StoredTensor& tensor : tensors) {
                                   if (!absl::EndsWith(tensor.name, "inp_shexp.weight")) continue;
                                   ASSERT_EQ(tensor.dims, (std::vector<uint64_t>{256, 1}));
                                   tensor.dims.pop_back();
                                   ++changed;
                                 }
                               }}));
  EXPECT_EQ(changed, 4);
}

TEST_F(ForeignFilesTest, OtherTensorsAreRefusedByName) {
  const std::string plain = Plain("test-gemma3");
  ExpectRefused(
      Changed(plain, {.tensors = [](auto& tensors) { AddTensor("vision.fc.weight", tensors); }}),
      "has a tensor 'vision.fc.weight' that its config does not use");
  ExpectRefused(Changed(plain, {.tensors =
                                    [](auto& tensors) {
                                      for (const char* name : {"b", "c", "v.x", "d", "e", "f"})
                                        AddTensor(name, tensors);
                                    }}),
                "has tensors 'b', 'c', 'd' and 2 more that its config does not use");
}

TEST_F(ForeignFilesTest, OtherNamesOfTensors) {
  const std::string mamba = Plain("test-granite4h");
  ExpectTheSame(mamba, Changed(mamba, {.tensors = [](std::vector<StoredTensor>& tensors) {
                                 Rename("ssm_dt.bias", "ssm_dt", tensors);
                               }}));
  const std::string lfm2 = Plain("test-lfm2", "F16");
  const GgufChange renamed{.tensors = [](std::vector<StoredTensor>& tensors) {
    Rename("token_embd_norm.weight", "output_norm.weight", tensors);
  }};
  ExpectTheSame(lfm2, Changed(lfm2, renamed));
  ExpectRefused(
      Changed(lfm2, {.tensors = [](auto& tensors) { AddTensor("output_norm.weight", tensors); }}),
      "has a tensor 'output_norm.weight' that its config does not use");
}

// Checkpoints of Gemma 4 have matrices for keys and values in the layers that use those of others.
TEST_F(ForeignFilesTest, KeysAndValuesThatNothingReads) {
  const std::string plain = Plain("test-gemma4-e");
  const auto with = [&](const char* name) {
    return Changed(plain, {.tensors = [&](auto& tensors) { AddTensor(name, tensors); }});
  };
  for (const char* unused : {"blk.5.attn_k.weight", "blk.6.attn_v.weight", "blk.7.attn_k.weight",
                             "blk.5.attn_k_norm.weight"}) {
    EXPECT_EQ(ExpectTheSame(plain, with(unused)), "");
  }
  ExpectRefused(with("blk.7.attn_v_norm.weight"), "that its config does not use");
}

// Gemma 4's files have it as a tensor how many angles turn.
TEST_F(ForeignFilesTest, DivisorsOfAnglesOfAnotherModelAreRefused) {
  const std::string plain = Plain("test-gemma4");
  const auto set = [&](size_t at, float value) {
    return Changed(plain, {.tensors = [&](std::vector<StoredTensor>& tensors) {
                     for (StoredTensor& tensor : tensors) {
                       if (tensor.name != "rope_freqs.weight") continue;
                       std::memcpy(tensor.data.data() + at * sizeof(value), &value, sizeof(value));
                     }
                   }});
  };
  ExpectTheSame(plain, set(7, 1));
  ExpectRefused(set(8, 1), "tensor 'rope_freqs.weight' has 1 at 8, not 1e+30");
  ExpectRefused(set(7, 1e30f), "tensor 'rope_freqs.weight' has 1e+30 at 7, not 1");
  ExpectRefused(Changed(plain, {.tensors =
                                    [](std::vector<StoredTensor>& tensors) {
                                      Rename("rope_freqs.weight", "v.x", tensors);
                                    }}),
                "has no tensor 'rope_freqs.weight'");
}

// Ollama's name of what the outputs of Gemma 4's experts are multiplied by.
TEST_F(ForeignFilesTest, OllamasScalesOfExperts) {
  const std::string plain = Plain("test-gemma4-moe");
  ExpectTheSame(plain, Changed(plain, {.tensors = [](std::vector<StoredTensor>& tensors) {
                                 Rename("ffn_down_exps.scale", "ffn_gate_inp.per_expert_scale",
                                        tensors);
                               }}));
}

// A damaged scale multiplies the outputs of chosen experts alone: it chooses no further one.
TEST_F(ForeignFilesTest, InfiniteScalesOfExpertsChooseNoMore) {
  const std::string damaged =
      Changed(Plain("test-gemma4-moe"), {.tensors = [](std::vector<StoredTensor>& tensors) {
                for (StoredTensor& tensor : tensors) {
                  if (tensor.name.find("ffn_down_exps.scale") == std::string::npos) continue;
                  const float infinity = std::numeric_limits<float>::infinity();
                  for (size_t at = 0; at < tensor.data.size(); at += sizeof(infinity))
                    std::memcpy(tensor.data.data() + at, &infinity, sizeof(infinity));
                }
              }});
  EXPECT_NE(LogitsOf(Must(LoadModel(damaged))),
            LogitsOf(Must(LoadModel(Plain("test-gemma4-moe")))));
}

struct Stacked {
  const char* config;
  void (*stack)(std::vector<StoredTensor>&);
  const char* stacked;  // one of the tensors
  const char* first;    // the first in it
};

void PrintTo(const Stacked& stacked, std::ostream* out) { *out << stacked.config; }

class StackedTest : public ForeignFilesTest, public ::testing::WithParamInterface<Stacked> {};

TEST_P(StackedTest, GivesTheSameBitsAndNeedsNoMoreMemory) {
  for (const char* type : {"F32", "F16", "Q8_0", "Q4_K"}) {
    SCOPED_TRACE(type);
    const std::string plain = Plain(GetParam().config, type);
    const std::string changed = Changed(plain, {.tensors = GetParam().stack});
    EXPECT_EQ(ExpectTheSame(plain, changed), "");
    const GgufFile file = Must(GgufFile::Open(changed));
    ASSERT_NE(file.FindTensor(GetParam().stacked), nullptr);
    EXPECT_EQ(file.FindTensor(GetParam().first), nullptr);
    const ConfigEntry& entry = *Must(FindConfig(file));
    EXPECT_EQ(entry.memory(file, {}).weights,
              entry.memory(Must(GgufFile::Open(plain)), {}).weights);
  }
}

TEST_P(StackedTest, IsPackedMatrixByMatrix) {
  for (const char* type : {"F16", "Q4_K"}) {
    SCOPED_TRACE(type);
    const std::string plain = Plain(GetParam().config, type);
    const std::string changed = Changed(plain, {.tensors = GetParam().stack});
    const GgufFile file = Must(GgufFile::Open(changed));
    Team team(2);
    const std::string packed = folder_.Path("packed");
    const absl::Status status = WritePacked(file, team, packed);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(ExpectTheSame(plain, packed), "");
    const GgufFile written = Must(GgufFile::Open(packed));
    EXPECT_EQ(written.FindTensor(GetParam().stacked), nullptr);
    ASSERT_NE(written.FindTensor(GetParam().first), nullptr);
    EXPECT_TRUE(written.FindTensor(GetParam().first)->packed);
    EXPECT_EQ(WeightsHashOf(written), WeightsHashOf(file));
  }
}

TEST_P(StackedTest, IsRefusedBesideItsMatricesAndWithRowsMissing) {
  const std::string plain = Plain(GetParam().config);
  ExpectRefused(Changed(plain, {.tensors =
                                    [](std::vector<StoredTensor>& tensors) {
                                      std::vector<StoredTensor> stacked = tensors;
                                      GetParam().stack(stacked);
                                      for (const StoredTensor& tensor : stacked) {
                                        if (tensor.name == GetParam().stacked)
                                          tensors.push_back(tensor);
                                      }
                                    }}),
                absl::StrCat("has a tensor '", GetParam().stacked, "' that its config does not"));
  ExpectRefused(
      Changed(plain, {.tensors =
                          [](std::vector<StoredTensor>& tensors) {
                            GetParam().stack(tensors);
                            for (StoredTensor& tensor : tensors) {
                              if (tensor.name != GetParam().stacked) continue;
                              tensor.data.resize(tensor.data.size() / tensor.dims[1]);
                              tensor.data.resize(tensor.data.size() * (tensor.dims[1] - 1));
                              --tensor.dims[1];
                            }
                          }}),
      absl::StrCat("tensor '", GetParam().stacked, "' is "));
}

INSTANTIATE_TEST_SUITE_P(Files, StackedTest,
                         ::testing::Values(Stacked{"test-gemma3", StackQkv, "blk.3.attn_qkv.weight",
                                                   "blk.3.attn_q.weight"},
                                           Stacked{"test-lfm2", StackQkv, "blk.2.attn_qkv.weight",
                                                   "blk.2.attn_q.weight"},
                                           Stacked{"test-granite4h-moe", StackExperts,
                                                   "blk.1.ffn_gate_up_exps.weight",
                                                   "blk.1.ffn_gate_exps.weight"}),
                         [](const auto& info) {
                           std::string name = info.param.config;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_F(ForeignFilesTest, OneValueForAllLayersOrOneForEach) {
  const std::string plain = Plain("test-gemma3");
  const std::vector<std::string> keys = {"gemma3.attention.head_count_kv",
                                         "gemma3.feed_forward_length",
                                         "gemma3.attention.sliding_window_pattern"};
  const auto changed = [&](const std::vector<int32_t>& kv_heads,
                           const absl::InlinedVector<bool, 8>& slides) {
    return Changed(plain, {.without_keys = keys, .add_keys = [&](GgufWriter& writer) {
                             writer.SetInt32s(keys[0], kv_heads);
                             writer.SetInt32s(keys[1], std::vector<int32_t>(6, 512));
                             writer.SetBools(keys[2], slides);
                           }});
  };
  const std::vector<int32_t> two(6, 2);
  EXPECT_EQ(ExpectTheSame(plain, changed(two, {true, true, true, true, true, false})), "");
  ExpectRefused(changed({2, 2, 2, 2, 2, 1}, {true, true, true, true, true, false}),
                ": gemma3.attention.head_count_kv is ");
  ExpectRefused(changed(two, {true, true, true, true, true, true}),
                ": gemma3.attention.sliding_window_pattern is ");
  ExpectRefused(changed(two, {true, true, true, true, true, false, true}),
                ": gemma3.attention.sliding_window_pattern is ");
  // The architecture's period.
  ExpectTheSame(plain, Changed(plain, {.without_keys = {keys[2]}}));
}

// Leftovers of a hybrid class, of a scaled position, of a converter's default.
TEST_F(ForeignFilesTest, KeysThatMeanNothingForTheConfig) {
  const std::string plain = Plain("test-gemma3");
  const GgufChange change{.without_keys = {"gemma3.context_length", "gemma3.vocab_size"},
                          .add_keys = [](GgufWriter& writer) {
                            writer.SetUint32("gemma3.context_length", 1048576);
                            writer.SetUint32("gemma3.vocab_size",
                                             500);  // the embedding has 512 rows
                            writer.SetUint32("gemma3.ssm.conv_kernel", 4);
                            writer.SetUint32("gemma3.ssm.inner_size", 512);
                            writer.SetBool("gemma3.rope.scaling.finetuned", true);
                            writer.SetInt32s("gemma3.rope.dimension_sections", {11, 11, 10});
                          }};
  EXPECT_EQ(ExpectTheSame(plain, Changed(plain, change)), "");
}

// The number of config.json before its rounding; the matrices are those of the config.
TEST_F(ForeignFilesTest, OllamasHiddenSizeOfLfm2) {
  const std::string plain = Plain("test-lfm2", "F16");
  const GgufChange change{
      .without_keys = {"lfm2.feed_forward_length"},
      .add_keys = [](GgufWriter& writer) { writer.SetUint32("lfm2.feed_forward_length", 96); }};
  EXPECT_EQ(ExpectTheSame(plain, Changed(plain, change)), "the key lfm2.feed_forward_length (96)");
}

// 0 for the layers that do not attend, which are those without heads of keys and values.
TEST_F(ForeignFilesTest, OllamasHeadsOfEachLayerOfLfm2) {
  const std::string plain = Plain("test-lfm2", "F16");
  const auto changed = [&](const std::vector<int32_t>& heads) {
    return Changed(
        plain, {.without_keys = {"lfm2.attention.head_count"}, .add_keys = [&](GgufWriter& writer) {
                  writer.SetInt32s("lfm2.attention.head_count", heads);
                }});
  };
  EXPECT_EQ(ExpectTheSame(plain, changed({0, 0, 8, 0, 8, 0})), "");
  for (const std::vector<int32_t>& wrong :
       {std::vector<int32_t>{0, 0, 8, 0, 4, 0}, {0, 0, 0, 0, 0, 0}, {}}) {
    ExpectRefused(changed(wrong), ": lfm2.attention.head_count is [");
  }
}

}  // namespace
}  // namespace inlay
