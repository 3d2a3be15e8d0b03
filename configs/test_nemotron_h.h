// A small Nemotron-H for tests: random weights, no vocabulary.
#ifndef INLAY_CONFIGS_TEST_NEMOTRON_H_H_
#define INLAY_CONFIGS_TEST_NEMOTRON_H_H_

#include <string_view>

#include "configs/nemotron_h.h"

namespace inlay {

struct TestNemotronH : NemotronH<NemotronHShape{.vocab_size = 512,
                                                .model_dim = 256,
                                                .layers = "M-M*-M-",
                                                .heads = 4,
                                                .kv_heads = 2,
                                                .head_dim = 64,
                                                .hidden = 256,
                                                .mamba_heads = 8,
                                                .mamba_head_dim = 32,
                                                .state_dim = 32,
                                                .groups = 4}> {
  static constexpr std::string_view kName = "test-nemotron-h";
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_TEST_NEMOTRON_H_H_
