// One small member of each family, for tests: random weights, no vocabulary.
#ifndef INLAY_CONFIGS_TEST_TWINS_H_
#define INLAY_CONFIGS_TEST_TWINS_H_

#include <string_view>

#include "configs/gemma2.h"
#include "configs/gemma3.h"
#include "configs/gemma_embedding.h"
#include "configs/granite.h"
#include "configs/granite4h.h"
#include "configs/mamba2.h"

namespace inlay {

struct TestGemma2 : Gemma2<Gemma2Shape{.vocab_size = 512,
                                       .model_dim = 256,
                                       .layers = 4,
                                       .heads = 4,
                                       .kv_heads = 2,
                                       .head_dim = 64,
                                       .hidden = 512,
                                       .window = 32}> {
  static constexpr std::string_view kName = "test-gemma2";
};

struct TestGemma3 : Gemma3<Gemma3Shape{.vocab_size = 512,
                                       .model_dim = 256,
                                       .layers = 6,
                                       .heads = 4,
                                       .kv_heads = 2,
                                       .head_dim = 64,
                                       .hidden = 512,
                                       .window = 32}> {
  static constexpr std::string_view kName = "test-gemma3";
};

struct TestGemmaEmbedding : GemmaEmbedding<GemmaEmbeddingShape{.vocab_size = 1024,
                                                               .model_dim = 256,
                                                               .layers = 4,
                                                               .heads = 4,
                                                               .kv_heads = 2,
                                                               .head_dim = 64,
                                                               .hidden = 512,
                                                               .window = 32,
                                                               .full_every = 3,
                                                               .max_tokens = 200,
                                                               .dense_dim = 384}> {
  static constexpr std::string_view kName = "test-gemma-embedding";
};

struct TestGranite : Granite<GraniteShape{.vocab_size = 512,
                                          .model_dim = 256,
                                          .layers = 3,
                                          .heads = 8,
                                          .kv_heads = 2,
                                          .hidden = 512,
                                          .attention_divisor = 32,
                                          .logit_divisor = 3}> {
  static constexpr std::string_view kName = "test-granite";
};

struct TestGranite4h : Granite4h<Granite4hShape{.vocab_size = 512,
                                                .model_dim = 256,
                                                .layers = 6,
                                                .attention_layers = LayersAt(2, 5),
                                                .heads = 8,
                                                .kv_heads = 2,
                                                .mamba_heads = 16,
                                                .mamba_head_dim = 32,
                                                .state_dim = 64,
                                                .hidden = 512,
                                                .attention_divisor = 32,
                                                .logit_divisor = 3}> {
  static constexpr std::string_view kName = "test-granite4h";
};

struct TestGranite4hMoe : Granite4h<Granite4hShape{.vocab_size = 512,
                                                   .model_dim = 256,
                                                   .layers = 4,
                                                   .attention_layers = LayersAt(1),
                                                   .heads = 8,
                                                   .kv_heads = 2,
                                                   .mamba_heads = 16,
                                                   .mamba_head_dim = 32,
                                                   .state_dim = 64,
                                                   .hidden = 256,
                                                   .experts = 8,
                                                   .used_experts = 2,
                                                   .shared_hidden = 256,
                                                   .attention_divisor = 32,
                                                   .logit_divisor = 3}> {
  static constexpr std::string_view kName = "test-granite4h-moe";
};

struct TestMamba2
    : Mamba2Family<Mamba2FamilyShape{
          .vocab_size = 512, .model_dim = 256, .layers = 4, .state_dim = 64, .groups = 2}> {
  static constexpr std::string_view kName = "test-mamba2";
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_TEST_TWINS_H_
