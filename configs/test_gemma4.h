// A small Gemma 4 of each kind for tests: random weights, no vocabulary.
#ifndef INLAY_CONFIGS_TEST_GEMMA4_H_
#define INLAY_CONFIGS_TEST_GEMMA4_H_

#include <string_view>

#include "configs/gemma4.h"

namespace inlay {

struct TestGemma4 : Gemma4<Gemma4Shape{.vocab_size = 512,
                                       .model_dim = 256,
                                       .layers = 6,
                                       .full_layers = LayersAt(5),
                                       .heads = 8,
                                       .kv_heads = 2,
                                       .full_kv_heads = 1,
                                       .head_dim = 32,
                                       .full_head_dim = 64,
                                       .hidden = 64,
                                       .window = 32}> {
  static constexpr std::string_view kName = "test-gemma4";
};

struct TestGemma4E : Gemma4<Gemma4Shape{.vocab_size = 512,
                                        .model_dim = 256,
                                        .layers = 8,
                                        .full_layers = LayersAt(4, 7),
                                        .heads = 4,
                                        .kv_heads = 1,
                                        .full_kv_heads = 1,
                                        .head_dim = 32,
                                        .full_head_dim = 64,
                                        .values_are_keys = false,
                                        .hidden = 64,
                                        .window = 32,
                                        .sharing_layers = 3,
                                        .sharing_hidden = 128,
                                        .layer_input = 32}> {
  static constexpr std::string_view kName = "test-gemma4-e";
};

struct TestGemma4Moe : Gemma4<Gemma4Shape{.vocab_size = 512,
                                          .model_dim = 256,
                                          .layers = 6,
                                          .full_layers = LayersAt(5),
                                          .heads = 4,
                                          .kv_heads = 2,
                                          .full_kv_heads = 1,
                                          .head_dim = 32,
                                          .full_head_dim = 64,
                                          .hidden = 64,
                                          .window = 32,
                                          .experts = 6,
                                          .used_experts = 3,
                                          .expert_hidden = 32}> {
  static constexpr std::string_view kName = "test-gemma4-moe";
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_TEST_GEMMA4_H_
