// A small LFM2 of each kind for tests: random weights, no vocabulary.
#ifndef INLAY_CONFIGS_TEST_LFM2_H_
#define INLAY_CONFIGS_TEST_LFM2_H_

#include <string_view>

#include "configs/lfm2.h"

namespace inlay {

struct TestLfm2 : Lfm2<Lfm2Shape{.vocab_size = 512,
                                 .model_dim = 256,
                                 .layers = 6,
                                 .attention_layers = LayersAt(2, 4),
                                 .heads = 8,
                                 .kv_heads = 2,
                                 .hidden = 64}> {
  static constexpr std::string_view kName = "test-lfm2";
};

struct TestLfm2Moe : Lfm2<Lfm2Shape{.vocab_size = 512,
                                    .model_dim = 256,
                                    .layers = 6,
                                    .attention_layers = LayersAt(2, 5),
                                    .heads = 8,
                                    .kv_heads = 2,
                                    .hidden = 64,
                                    .experts = 6,
                                    .used_experts = 3,
                                    .expert_hidden = 32}> {
  static constexpr std::string_view kName = "test-lfm2moe";
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_TEST_LFM2_H_
