// The metadata of published checkpoints, as converters write it: it fits the checkpoint's config,
// or is refused by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gemma_like/registry.h"
#include "io/gguf/gguf_writer.h"
#include "tests/gemma_like/model/metadata_file.h"
#include "tests/must.h"

namespace inlay {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The keys that the hub's files of some checkpoints carry, in the form of their converter, which
// leaves out what the architecture implies.
void WriteGemma2_2b(GgufWriter& w) {
  w.SetString("general.architecture", "gemma2");
  w.SetUint32("gemma2.context_length", 8192);
  w.SetUint32("gemma2.embedding_length", 2304);
  w.SetUint32("gemma2.block_count", 26);
  w.SetUint32("gemma2.feed_forward_length", 9216);
  w.SetUint32("gemma2.attention.head_count", 8);
  w.SetUint32("gemma2.attention.head_count_kv", 4);
  w.SetFloat32("gemma2.attention.layer_norm_rms_epsilon", 1e-6f);
  w.SetUint32("gemma2.attention.key_length", 256);
  w.SetUint32("gemma2.attention.value_length", 256);
  w.SetFloat32("gemma2.attn_logit_softcapping", 50);
  w.SetFloat32("gemma2.final_logit_softcapping", 30);
  w.SetUint32("gemma2.attention.sliding_window", 4096);
}
void WriteGemma3_12b(GgufWriter& w) {
  w.SetString("general.architecture", "gemma3");
  w.SetUint32("gemma3.context_length", 131072);
  w.SetUint32("gemma3.embedding_length", 3840);
  w.SetUint32("gemma3.block_count", 48);
  w.SetUint32("gemma3.feed_forward_length", 15360);
  w.SetUint32("gemma3.attention.head_count", 16);
  w.SetFloat32("gemma3.attention.layer_norm_rms_epsilon", 1e-6f);
  w.SetUint32("gemma3.attention.key_length", 256);
  w.SetUint32("gemma3.attention.value_length", 256);
  w.SetFloat32("gemma3.rope.freq_base", 1e6f);
  w.SetUint32("gemma3.attention.sliding_window", 1024);
  w.SetUint32("gemma3.attention.head_count_kv", 8);
  w.SetString("gemma3.rope.scaling.type", "linear");
  w.SetFloat32("gemma3.rope.scaling.factor", 8);
}
void WriteGranite4hSmall(GgufWriter& w) {
  w.SetString("general.architecture", "granitehybrid");
  w.SetUint32("granitehybrid.block_count", 40);
  w.SetUint32("granitehybrid.context_length", 1048576);
  w.SetUint32("granitehybrid.embedding_length", 4096);
  w.SetUint32("granitehybrid.feed_forward_length", 768);
  w.SetUint32("granitehybrid.attention.head_count", 32);
  std::vector<int32_t> kv_heads(40);
  for (size_t i : {5, 15, 25, 35}) kv_heads[i] = 8;
  w.SetInt32s("granitehybrid.attention.head_count_kv", kv_heads);
  w.SetFloat32("granitehybrid.rope.freq_base", 10000);
  w.SetFloat32("granitehybrid.attention.layer_norm_rms_epsilon", 1e-5f);
  w.SetUint32("granitehybrid.expert_count", 72);
  w.SetUint32("granitehybrid.expert_used_count", 10);
  w.SetUint32("granitehybrid.vocab_size", 100352);
  w.SetUint32("granitehybrid.rope.dimension_count", 128);
  w.SetFloat32("granitehybrid.attention.scale", 0.0078125f);
  w.SetFloat32("granitehybrid.embedding_scale", 12);
  w.SetFloat32("granitehybrid.residual_scale", 0.22f);
  w.SetFloat32("granitehybrid.logit_scale", 16);
  w.SetUint32("granitehybrid.expert_shared_feed_forward_length", 1536);
  w.SetUint32("granitehybrid.ssm.conv_kernel", 4);
  w.SetUint32("granitehybrid.ssm.state_size", 128);
  w.SetUint32("granitehybrid.ssm.group_count", 1);
  w.SetUint32("granitehybrid.ssm.inner_size", 8192);
  w.SetUint32("granitehybrid.ssm.time_step_rank", 128);
  w.SetBool("granitehybrid.rope.scaling.finetuned", false);
}
// It says neither that attention goes both ways nor which layers have a window.
void WriteEmbeddingGemma(GgufWriter& w) {
  w.SetString("general.architecture", "gemma-embedding");
  w.SetUint32("gemma-embedding.context_length", 2048);
  w.SetUint32("gemma-embedding.embedding_length", 768);
  w.SetUint32("gemma-embedding.block_count", 24);
  w.SetUint32("gemma-embedding.feed_forward_length", 1152);
  w.SetUint32("gemma-embedding.attention.head_count", 3);
  w.SetUint32("gemma-embedding.attention.head_count_kv", 1);
  w.SetFloat32("gemma-embedding.attention.layer_norm_rms_epsilon", 1e-6f);
  w.SetUint32("gemma-embedding.attention.key_length", 256);
  w.SetUint32("gemma-embedding.attention.value_length", 256);
  w.SetFloat32("gemma-embedding.rope.freq_base", 1e6f);
  w.SetUint32("gemma-embedding.attention.sliding_window", 512);
  w.SetUint32("gemma-embedding.pooling_type", 1);
  w.SetUint32("gemma-embedding.dense_2_feat_in", 768);
  w.SetUint32("gemma-embedding.dense_2_feat_out", 3072);
  w.SetUint32("gemma-embedding.dense_3_feat_in", 3072);
  w.SetUint32("gemma-embedding.dense_3_feat_out", 768);
}
// Made from the class of the hybrid models: with a head count for each layer, and leftover keys.
void WriteGraniteMicro(GgufWriter& w) {
  w.SetString("general.architecture", "granite");
  w.SetUint32("granite.block_count", 40);
  w.SetUint32("granite.context_length", 131072);
  w.SetUint32("granite.embedding_length", 2560);
  w.SetUint32("granite.feed_forward_length", 8192);
  w.SetUint32("granite.attention.head_count", 40);
  w.SetInt32s("granite.attention.head_count_kv", std::vector<int32_t>(40, 8));
  w.SetFloat32("granite.rope.freq_base", 10'000'000);
  w.SetFloat32("granite.attention.layer_norm_rms_epsilon", 1e-5f);
  w.SetUint32("granite.vocab_size", 100352);
  w.SetUint32("granite.rope.dimension_count", 64);
  w.SetFloat32("granite.attention.scale", 0.015625f);
  w.SetFloat32("granite.embedding_scale", 12);
  w.SetFloat32("granite.residual_scale", 0.22f);
  w.SetFloat32("granite.logit_scale", 10);
  w.SetUint32("granite.ssm.conv_kernel", 4);
  w.SetUint32("granite.ssm.state_size", 256);
  w.SetBool("granite.rope.scaling.finetuned", true);
}
// Without what its values mean when they are missing.
void WriteGranite_4_2_3b(GgufWriter& w) {
  w.SetString("general.architecture", "granite");
  w.SetUint32("granite.block_count", 40);
  w.SetUint32("granite.context_length", 131072);
  w.SetUint32("granite.embedding_length", 2560);
  w.SetUint32("granite.feed_forward_length", 8192);
  w.SetUint32("granite.attention.head_count", 40);
  w.SetUint32("granite.attention.head_count_kv", 8);
  w.SetFloat32("granite.rope.freq_base", 10'000'000);
  w.SetFloat32("granite.attention.layer_norm_rms_epsilon", 1e-5f);
  w.SetFloat32("granite.attention.scale", 0.015625f);
}
void WriteMambaCodestral(GgufWriter& w) {
  w.SetString("general.architecture", "mamba2");
  w.SetUint32("mamba2.context_length", 1048576);
  w.SetUint32("mamba2.embedding_length", 4096);
  w.SetUint32("mamba2.feed_forward_length", 0);
  w.SetUint32("mamba2.attention.head_count", 0);
  w.SetUint32("mamba2.block_count", 64);
  w.SetUint32("mamba2.ssm.conv_kernel", 4);
  w.SetUint32("mamba2.ssm.inner_size", 8192);
  w.SetUint32("mamba2.ssm.state_size", 128);
  w.SetUint32("mamba2.ssm.time_step_rank", 128);
  w.SetUint32("mamba2.ssm.group_count", 8);
  w.SetFloat32("mamba2.attention.layer_norm_rms_epsilon", 1e-5f);
}
void WriteMamba2_130m(GgufWriter& w) {
  w.SetString("general.architecture", "mamba2");
  w.SetUint32("mamba2.context_length", 1048576);
  w.SetUint32("mamba2.embedding_length", 768);
  w.SetUint32("mamba2.feed_forward_length", 0);
  w.SetUint32("mamba2.attention.head_count", 0);
  w.SetUint32("mamba2.block_count", 24);
  w.SetUint32("mamba2.ssm.conv_kernel", 4);
  w.SetUint32("mamba2.ssm.inner_size", 1536);
  w.SetUint32("mamba2.ssm.state_size", 128);
  w.SetUint32("mamba2.ssm.time_step_rank", 24);
  w.SetUint32("mamba2.ssm.group_count", 1);
  w.SetFloat32("mamba2.attention.layer_norm_rms_epsilon", 1e-5f);
}

// Its feed_forward_length is that of the dense layers.
void WriteLfm2_8bA1b(GgufWriter& w) {
  w.SetString("general.architecture", "lfm2moe");
  w.SetUint32("lfm2moe.block_count", 24);
  w.SetUint32("lfm2moe.context_length", 128000);
  w.SetUint32("lfm2moe.embedding_length", 2048);
  w.SetUint32("lfm2moe.feed_forward_length", 7168);
  w.SetUint32("lfm2moe.attention.head_count", 32);
  std::vector<int32_t> kv_heads(24);
  for (size_t i : {2, 6, 10, 14, 18, 21}) kv_heads[i] = 8;
  w.SetInt32s("lfm2moe.attention.head_count_kv", kv_heads);
  w.SetFloat32("lfm2moe.rope.freq_base", 1e6f);
  w.SetFloat32("lfm2moe.attention.layer_norm_rms_epsilon", 1e-5f);
  w.SetUint32("lfm2moe.expert_count", 32);
  w.SetUint32("lfm2moe.expert_used_count", 4);
  w.SetUint32("lfm2moe.expert_feed_forward_length", 1792);
  w.SetUint32("lfm2moe.leading_dense_block_count", 2);
  w.SetUint32("lfm2moe.expert_gating_func", 2);
  w.SetUint32("lfm2moe.shortconv.l_cache", 3);
  w.SetUint32("lfm2moe.vocab_size", 65536);
}

// As today's converter writes it, with the block that drafts.
void WriteQwen35_27b(GgufWriter& w) {
  w.SetString("general.architecture", "qwen35");
  w.SetUint32("qwen35.block_count", 65);
  w.SetUint32("qwen35.nextn_predict_layers", 1);
  w.SetUint32("qwen35.context_length", 262144);
  w.SetUint32("qwen35.embedding_length", 5120);
  w.SetUint32("qwen35.feed_forward_length", 17408);
  w.SetUint32("qwen35.attention.head_count", 24);
  w.SetUint32("qwen35.attention.head_count_kv", 4);
  w.SetInt32s("qwen35.rope.dimension_sections", {11, 11, 10, 0});
  w.SetFloat32("qwen35.rope.freq_base", 1e7f);
  w.SetFloat32("qwen35.attention.layer_norm_rms_epsilon", 1e-6f);
  w.SetUint32("qwen35.attention.key_length", 256);
  w.SetUint32("qwen35.attention.value_length", 256);
  w.SetUint32("qwen35.ssm.conv_kernel", 4);
  w.SetUint32("qwen35.ssm.state_size", 128);
  w.SetUint32("qwen35.ssm.group_count", 16);
  w.SetUint32("qwen35.ssm.time_step_rank", 48);
  w.SetUint32("qwen35.ssm.inner_size", 6144);
  w.SetUint32("qwen35.full_attention_interval", 4);
  w.SetUint32("qwen35.rope.dimension_count", 64);
}
// As Ollama writes it: three sections under another name, and heads for each layer.
void WriteOllamaQwen35_35bA3b(GgufWriter& w) {
  w.SetString("general.architecture", "qwen35moe");
  w.SetUint32("qwen35moe.block_count", 40);
  w.SetUint32("qwen35moe.context_length", 262144);
  w.SetUint32("qwen35moe.embedding_length", 2048);
  w.SetUint32("qwen35moe.feed_forward_length", 5632);  // of no layer
  w.SetUint32("qwen35moe.attention.head_count", 16);
  std::vector<int32_t> kv_heads(40);
  for (size_t i = 3; i < 40; i += 4) kv_heads[i] = 2;
  w.SetInt32s("qwen35moe.attention.head_count_kv", kv_heads);
  w.SetInt32s("qwen35moe.mrope_sections", {11, 11, 10});
  w.SetFloat32("qwen35moe.rope.freq_base", 1e7f);
  w.SetFloat32("qwen35moe.attention.layer_norm_rms_epsilon", 1e-6f);
  w.SetUint32("qwen35moe.attention.key_length", 256);
  w.SetUint32("qwen35moe.attention.value_length", 256);
  w.SetUint32("qwen35moe.expert_count", 256);
  w.SetUint32("qwen35moe.expert_used_count", 8);
  w.SetUint32("qwen35moe.expert_feed_forward_length", 512);
  w.SetUint32("qwen35moe.expert_shared_feed_forward_length", 512);
  w.SetBool("qwen35moe.norm_top_k_prob", true);
  w.SetUint32("qwen35moe.ssm.conv_kernel", 4);
  w.SetUint32("qwen35moe.ssm.state_size", 128);
  w.SetUint32("qwen35moe.ssm.group_count", 16);
  w.SetUint32("qwen35moe.ssm.time_step_rank", 32);
  w.SetUint32("qwen35moe.ssm.inner_size", 4096);
  w.SetBool("qwen35moe.ssm.v_head_reordered", true);
  w.SetUint32("qwen35moe.full_attention_interval", 4);
  w.SetUint32("qwen35moe.rope.dimension_count", 64);
}

void WriteFalconH1_1_5bDeep(GgufWriter& w) {
  w.SetString("general.architecture", "falcon-h1");
  w.SetUint32("falcon-h1.block_count", 66);
  w.SetUint32("falcon-h1.context_length", 131072);
  w.SetUint32("falcon-h1.embedding_length", 1280);
  w.SetUint32("falcon-h1.feed_forward_length", 3072);
  w.SetUint32("falcon-h1.attention.head_count", 6);
  w.SetUint32("falcon-h1.attention.head_count_kv", 2);
  w.SetUint32("falcon-h1.attention.key_length", 128);
  w.SetUint32("falcon-h1.attention.value_length", 128);
  w.SetFloat32("falcon-h1.rope.freq_base", 1e11f);
  w.SetFloat32("falcon-h1.attention.layer_norm_rms_epsilon", 1e-5f);
  w.SetUint32("falcon-h1.ssm.conv_kernel", 4);
  w.SetUint32("falcon-h1.ssm.inner_size", 1536);
  w.SetUint32("falcon-h1.ssm.state_size", 256);
  w.SetUint32("falcon-h1.ssm.time_step_rank", 24);
  w.SetUint32("falcon-h1.ssm.group_count", 1);
  w.SetUint32("falcon-h1.vocab_size", 65537);
}

// What both architectures of the family have.
void WriteNemotron(const std::string& architecture, GgufWriter& w) {
  const auto key = [&](const char* name) { return absl::StrCat(architecture, ".", name); };
  w.SetString("general.architecture", architecture);
  w.SetUint32(key("context_length"), 1048576);
  w.SetUint32(key("vocab_size"), 131072);
  w.SetUint32(key("attention.key_length"), 128);
  w.SetUint32(key("attention.value_length"), 128);
  w.SetFloat32(key("attention.layer_norm_rms_epsilon"), 1e-5f);
  w.SetFloat32(key("attention.layer_norm_epsilon"), 1e-5f);
  w.SetFloat32(key("rope.freq_base"), 10000);  // although nothing is rotated
  w.SetBool(key("rope.scaling.finetuned"), false);
  w.SetUint32(key("ssm.conv_kernel"), 4);
  w.SetUint32(key("ssm.state_size"), 128);
  w.SetUint32(key("ssm.group_count"), 8);
}
void WriteNemotronNano2_9b(GgufWriter& w) {
  WriteNemotron("nemotron_h", w);
  const std::string layers = "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-";
  std::vector<int32_t> kv_heads, hidden;
  for (const char layer : layers) {
    kv_heads.push_back(layer == '*' ? 8 : 0);
    hidden.push_back(layer == '-' ? 15680 : 0);
  }
  w.SetUint32("nemotron_h.block_count", 56);
  w.SetUint32("nemotron_h.embedding_length", 4480);
  w.SetInt32s("nemotron_h.feed_forward_length", hidden);
  w.SetUint32("nemotron_h.attention.head_count", 40);
  w.SetInt32s("nemotron_h.attention.head_count_kv", kv_heads);
  w.SetUint32("nemotron_h.rope.dimension_count", 112);
  w.SetUint32("nemotron_h.ssm.inner_size", 10240);
  w.SetUint32("nemotron_h.ssm.time_step_rank", 128);
}
// With the numbers of `drafts` blocks more.
void WriteNemotron3Nano_30b(size_t drafts, GgufWriter& w) {
  WriteNemotron("nemotron_h_moe", w);
  std::vector<int32_t> kv_heads(52 + drafts), hidden(52 + drafts);
  for (size_t i : {5, 12, 19, 26, 33, 42}) kv_heads[i] = 2;
  for (size_t i :
       {1, 3, 6, 8, 10, 13, 15, 17, 20, 22, 24, 27, 29, 31, 34, 36, 38, 40, 43, 45, 47, 49, 51}) {
    hidden[i] = 1856;
  }
  for (size_t i = 52; i < 52 + drafts; ++i) {
    kv_heads[i] = 2;
    hidden[i] = 1856;
  }
  w.SetUint32("nemotron_h_moe.block_count", static_cast<uint32_t>(52 + drafts));
  if (drafts > 0) {
    w.SetUint32("nemotron_h_moe.nextn_predict_layers", static_cast<uint32_t>(drafts));
  }
  w.SetUint32("nemotron_h_moe.embedding_length", 2688);
  w.SetInt32s("nemotron_h_moe.feed_forward_length", hidden);
  w.SetUint32("nemotron_h_moe.attention.head_count", 32);
  w.SetInt32s("nemotron_h_moe.attention.head_count_kv", kv_heads);
  w.SetUint32("nemotron_h_moe.rope.dimension_count", 84);
  w.SetUint32("nemotron_h_moe.ssm.inner_size", 4096);
  w.SetUint32("nemotron_h_moe.ssm.time_step_rank", 64);
  w.SetUint32("nemotron_h_moe.expert_count", 128);
  w.SetUint32("nemotron_h_moe.expert_used_count", 6);
  w.SetUint32("nemotron_h_moe.expert_feed_forward_length", 1856);
  w.SetUint32("nemotron_h_moe.expert_shared_feed_forward_length", 3712);
  w.SetUint32("nemotron_h_moe.expert_shared_count", 1);
  w.SetBool("nemotron_h_moe.expert_weights_norm", true);
  w.SetFloat32("nemotron_h_moe.expert_weights_scale", 2.5f);
  w.SetUint32("nemotron_h_moe.expert_group_count", 1);
  w.SetUint32("nemotron_h_moe.expert_group_used_count", 1);
}
void WriteNemotron3Nano_30bA3b(GgufWriter& w) { WriteNemotron3Nano_30b(0, w); }
void WriteNemotron3Nano_30bA3bWithDrafts(GgufWriter& w) { WriteNemotron3Nano_30b(1, w); }

struct Gemma4Numbers {
  size_t layers = 0;
  size_t period = 0;  // the last layer of each is not sliding
  uint32_t model_dim = 0;
  uint32_t heads = 0;
  uint32_t window = 0;
  uint32_t sharing_layers = 0;
  uint32_t layer_input = 0;
};
// What all sizes have.
void WriteGemma4(const Gemma4Numbers& numbers, GgufWriter& w) {
  std::array<bool, 64> sliding;
  for (size_t i = 0; i < numbers.layers; ++i) sliding[i] = (i + 1) % numbers.period != 0;
  w.SetString("general.architecture", "gemma4");
  w.SetUint32("gemma4.block_count", static_cast<uint32_t>(numbers.layers));
  w.SetUint32("gemma4.embedding_length", numbers.model_dim);
  w.SetUint32("gemma4.attention.head_count", numbers.heads);
  w.SetFloat32("gemma4.attention.layer_norm_rms_epsilon", 1e-6f);
  w.SetFloat32("gemma4.rope.freq_base", 1e6f);
  w.SetFloat32("gemma4.rope.freq_base_swa", 1e4f);
  w.SetUint32("gemma4.rope.dimension_count", 512);
  w.SetUint32("gemma4.rope.dimension_count_swa", 256);
  w.SetUint32("gemma4.attention.key_length", 512);
  w.SetUint32("gemma4.attention.value_length", 512);
  w.SetUint32("gemma4.attention.key_length_swa", 256);
  w.SetUint32("gemma4.attention.value_length_swa", 256);
  w.SetUint32("gemma4.attention.sliding_window", numbers.window);
  w.SetBools("gemma4.attention.sliding_window_pattern",
             absl::MakeConstSpan(sliding).first(numbers.layers));
  w.SetUint32("gemma4.attention.shared_kv_layers", numbers.sharing_layers);
  w.SetUint32("gemma4.embedding_length_per_layer_input", numbers.layer_input);
  w.SetFloat32("gemma4.final_logit_softcapping", 30);
}
// Its MLPs differ: an array of their sizes.
void WriteGemma4_E2b(GgufWriter& w) {
  WriteGemma4({.layers = 35,
               .period = 5,
               .model_dim = 1536,
               .heads = 8,
               .window = 512,
               .sharing_layers = 20,
               .layer_input = 256},
              w);
  std::vector<int32_t> hidden(35, 6144);
  std::fill(hidden.begin() + 15, hidden.end(), 12288);
  w.SetUint32("gemma4.context_length", 131072);
  w.SetInt32s("gemma4.feed_forward_length", hidden);
  w.SetUint32("gemma4.attention.head_count_kv", 1);
}
// Its layers' heads differ: an array of their numbers.
void WriteGemma4_26bA4b(GgufWriter& w) {
  WriteGemma4({.layers = 30, .period = 6, .model_dim = 2816, .heads = 16, .window = 1024}, w);
  std::vector<int32_t> kv_heads(30, 8);
  for (size_t i = 5; i < 30; i += 6) kv_heads[i] = 2;
  w.SetUint32("gemma4.context_length", 262144);
  w.SetUint32("gemma4.feed_forward_length", 2112);
  w.SetInt32s("gemma4.attention.head_count_kv", kv_heads);
  w.SetUint32("gemma4.expert_count", 128);
  w.SetUint32("gemma4.expert_used_count", 8);
  w.SetUint32("gemma4.expert_feed_forward_length", 704);
}
void WriteGemma4_31b(GgufWriter& w) {
  WriteGemma4({.layers = 60, .period = 6, .model_dim = 5376, .heads = 32, .window = 1024}, w);
  std::vector<int32_t> kv_heads(60, 16);
  for (size_t i = 5; i < 60; i += 6) kv_heads[i] = 4;
  w.SetUint32("gemma4.context_length", 262144);
  w.SetUint32("gemma4.feed_forward_length", 21504);
  w.SetInt32s("gemma4.attention.head_count_kv", kv_heads);
}

TEST(MetadataOfTheHubTest, FitsTheCheckpointsConfig) {
  const std::pair<const char*, void (*)(GgufWriter&)> files[] = {
      {"gemma-2-2b", WriteGemma2_2b},
      {"gemma-3-12b", WriteGemma3_12b},
      {"embeddinggemma-300m", WriteEmbeddingGemma},
      {"granite-4.0-h-small", WriteGranite4hSmall},
      {"granite-4.0-micro", WriteGraniteMicro},
      {"granite-4.2-3b", WriteGranite_4_2_3b},
      {"mamba-codestral-7b", WriteMambaCodestral},
      {"lfm2-8b-a1b", WriteLfm2_8bA1b},
      {"falcon-h1-1.5b-deep", WriteFalconH1_1_5bDeep},
      {"qwen3.5-27b", WriteQwen35_27b},
      {"qwen3.5-35b-a3b", WriteOllamaQwen35_35bA3b},
      {"nemotron-nano-9b-v2", WriteNemotronNano2_9b},
      {"nemotron-3-nano-30b-a3b", WriteNemotron3Nano_30bA3b},
      {"nemotron-3-nano-30b-a3b", WriteNemotron3Nano_30bA3bWithDrafts},
      {"gemma-4-e2b", WriteGemma4_E2b},
      {"gemma-4-26b-a4b", WriteGemma4_26bA4b},
      {"gemma-4-31b", WriteGemma4_31b},
      {"mamba2-130m", WriteMamba2_130m}};
  for (const auto& [name, write] : files) {
    GgufWriter writer;
    write(writer);
    const auto entry = FindFor(writer);
    ASSERT_TRUE(entry.ok()) << entry.status();
    EXPECT_EQ((*entry)->name, name);
  }
}

// The keys of Ollama's own conversion, which is one file with the vision part.
void WriteOllamaGemma3_4b(GgufWriter& w) {
  w.SetString("general.architecture", "gemma3");
  w.SetUint64("general.parameter_count", 4299915632);
  w.SetUint32("gemma3.attention.head_count", 8);
  w.SetUint32("gemma3.attention.head_count_kv", 4);
  w.SetUint32("gemma3.attention.key_length", 256);
  w.SetUint32("gemma3.attention.sliding_window", 1024);
  w.SetUint32("gemma3.attention.value_length", 256);
  w.SetUint32("gemma3.block_count", 34);
  w.SetUint32("gemma3.context_length", 131072);
  w.SetUint32("gemma3.embedding_length", 2560);
  w.SetUint32("gemma3.feed_forward_length", 10240);
  w.SetUint32("gemma3.mm.tokens_per_image", 256);
  w.SetUint32("gemma3.vision.block_count", 27);
}

// The epsilon, the bases and the scale of the positions are those of the published checkpoint.
TEST(MetadataOfTheHubTest, OllamasGemma3LacksWhatItsSizeFixes) {
  GgufWriter writer;
  WriteOllamaGemma3_4b(writer);
  const auto entry = FindFor(writer);
  ASSERT_TRUE(entry.ok()) << entry.status();
  EXPECT_EQ((*entry)->name, "gemma-3-4b");
}

// Its converter writes "yarn" for checkpoints that were extended so, whose angles are others.
TEST(MetadataOfTheHubTest, AnotherKindOfScaledPositionsIsRefused) {
  GgufWriter writer;
  WriteOllamaGemma3_4b(writer);
  writer.SetString("gemma3.rope.scaling.type", "yarn");
  writer.SetFloat32("gemma3.rope.scaling.factor", 8);
  const auto entry = FindFor(writer);
  ASSERT_FALSE(entry.ok());
  EXPECT_THAT(std::string(entry.status().message()),
              HasSubstr(": gemma3.rope.scaling.type is 'yarn' but config gemma-3-4b has 'linear'"));
}

// The first three of them.
TEST(MetadataOfTheHubTest, TheDifferencesFromTheNearestConfigAreNamed) {
  const auto refused = [](const std::function<void(GgufWriter&)>& change) {
    GgufWriter writer;
    WriteOllamaGemma3_4b(writer);
    change(writer);
    return std::string(FindFor(writer).status().message());
  };
  const auto other_positions = [](GgufWriter& w) {
    w.SetFloat32("gemma3.rope.freq_base", 5e5f);
    w.SetFloat32("gemma3.rope.scaling.factor", 4);
  };
  EXPECT_THAT(refused(other_positions),
              HasSubstr("fits no built-in config: gemma3.rope.freq_base is 500000 but config "
                        "gemma-3-4b has 1e+06; gemma3.rope.scaling.factor is 4 but config "
                        "gemma-3-4b has 8"));
  EXPECT_THAT(refused([&](GgufWriter& w) {
                other_positions(w);
                w.SetFloat32("gemma3.rope.freq_base_swa", 5e5f);
                w.SetBool("gemma3.attention.causal", false);
                w.SetFloat32("gemma3.final_logit_softcapping", 20);
              }),
              AllOf(HasSubstr("gemma3.attention.causal is false but config gemma-3-4b has true; "),
                    HasSubstr(" (and 2 more differ)")));
}

// Their weights are without the multipliers that today's files have in them.
TEST(MetadataOfTheHubTest, TheFirstFilesOfFalconH1AreRefused) {
  GgufWriter writer;
  WriteFalconH1_1_5bDeep(writer);
  writer.SetFloat32("falcon-h1.mlp_gate_multiplier", 0.70710677f);
  writer.SetFloat32("falcon-h1.mlp_down_multiplier", 0.3125f);
  writer.SetBool("falcon-h1.ssm.has_mup", true);
  EXPECT_THAT(std::string(FindFor(writer).status().message()),
              HasSubstr("falcon-h1.ssm.has_mup is true but config falcon-h1-1.5b-deep has false"));
}

TEST(MetadataOfTheHubTest, FilesBesideTextModelsAreToldWhatTheyAre) {
  for (const auto& [architecture, what] :
       {std::pair("clip", "it is the vision or audio part of a model, not the text model"),
        std::pair("gemma4-assistant", "it drafts for a Gemma 4 model"),
        std::pair("lfm2-bidir", "it embeds texts with LFM2's layers"),
        std::pair("nemotron_h_omni", "take a file of its text model")}) {
    GgufWriter writer;
    writer.SetString("general.architecture", architecture);
    EXPECT_THAT(std::string(FindFor(writer).status().message()), HasSubstr(what));
  }
  GgufWriter writer;
  writer.SetString("general.architecture", "gemma3");
  const std::array<uint8_t, 32 * sizeof(float)> data = {};
  for (const char* name : {"dense.0.weight", "dense.1.weight"})
    ASSERT_TRUE(writer.AddTensor(name, {32}, WeightType::kF32).ok());
  const std::string path = TempPath("metadata_test.gguf");
  ASSERT_TRUE(writer.Open(path).ok());
  for (int tensor = 0; tensor < 2; ++tensor) ASSERT_TRUE(writer.AppendData(data).ok());
  ASSERT_TRUE(writer.Finish().ok());
  EXPECT_THAT(std::string(FindConfig(Must(GgufFile::Open(path))).status().message()),
              HasSubstr("is EmbeddingGemma in the form of Ollama's first files"));
}

TEST(MetadataOfTheHubTest, AWindowForLfm2IsRefused) {
  for (const uint32_t window : {0, 4096}) {
    GgufWriter writer;
    WriteLfm2_8bA1b(writer);
    writer.SetUint32("lfm2moe.attention.sliding_window", window);
    const auto entry = FindFor(writer);
    if (window == 0) {
      EXPECT_TRUE(entry.ok()) << entry.status();
    } else {
      EXPECT_THAT(std::string(entry.status().message()),
                  HasSubstr("sliding_window is 4096 but config lfm2-8b-a1b has 0"));
    }
  }
}

TEST(MetadataOfTheHubTest, AnUnknownArchitectureIsToldWhichThereAre) {
  GgufWriter writer;
  writer.SetString("general.architecture", "gpt2");
  const auto entry = FindFor(writer);
  ASSERT_FALSE(entry.ok());
  std::vector<absl::string_view> known;  // each once, in the order of the config list
  for (const ConfigEntry& config : ConfigEntries()) {
    if (std::find(known.begin(), known.end(), config.architecture) == known.end())
      known.push_back(config.architecture);
  }
  EXPECT_GE(known.size(), 15u);
  EXPECT_THAT(
      std::string(entry.status().message()),
      HasSubstr(absl::StrCat("has architecture 'gpt2', which is not one of those built in (",
                             absl::StrJoin(known, ", "), "); inlay configs lists the models")));
}

}  // namespace
}  // namespace inlay
