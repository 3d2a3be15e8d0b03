// Small members of the Qwen3.5 family for tests: random weights, no vocabulary.
#ifndef INLAY_CONFIGS_TEST_QWEN35_H_
#define INLAY_CONFIGS_TEST_QWEN35_H_

#include <string_view>

#include "configs/qwen35.h"

namespace inlay {

struct TestQwen35 : Qwen35<Qwen35Shape{.vocab_size = 512,
                                       .model_dim = 256,
                                       .layers = 5,
                                       .heads = 4,
                                       .kv_heads = 2,
                                       .head_dim = 64,
                                       .rotated = 16,
                                       .key_heads = 2,
                                       .value_heads = 4,
                                       .delta_dim = 64,
                                       .hidden = 256,
                                       .tied_output = true}> {
  static constexpr std::string_view kName = "test-qwen35";
};

// Heads of the real size; its files have a block more, for drafts.
struct TestQwen35Mtp : Qwen35<Qwen35Shape{.vocab_size = 512,
                                          .model_dim = 256,
                                          .layers = 4,
                                          .heads = 4,
                                          .kv_heads = 2,
                                          .head_dim = 64,
                                          .rotated = 16,
                                          .key_heads = 2,
                                          .value_heads = 4,
                                          .delta_dim = 128,
                                          .hidden = 256}> {
  static constexpr std::string_view kName = "test-qwen35-mtp";
};

struct TestQwen35Moe : Qwen35<Qwen35Shape{.vocab_size = 512,
                                          .model_dim = 256,
                                          .layers = 4,
                                          .heads = 4,
                                          .kv_heads = 2,
                                          .head_dim = 64,
                                          .rotated = 16,
                                          .key_heads = 2,
                                          .value_heads = 6,
                                          .delta_dim = 32,
                                          .hidden = 32,
                                          .experts = 8,
                                          .used_experts = 2,
                                          .shared_hidden = 64}> {
  static constexpr std::string_view kName = "test-qwen35moe";
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_TEST_QWEN35_H_
