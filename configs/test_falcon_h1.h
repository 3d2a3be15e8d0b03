// A small Falcon-H1 for tests: random weights, no vocabulary.
#ifndef INLAY_CONFIGS_TEST_FALCON_H1_H_
#define INLAY_CONFIGS_TEST_FALCON_H1_H_

#include <string_view>

#include "configs/falcon_h1.h"

namespace inlay {

struct TestFalconH1 : FalconH1<FalconH1Shape{.vocab_size = 512,
                                             .model_dim = 256,
                                             .layers = 4,
                                             .heads = 8,
                                             .head_dim = 32,
                                             .hidden = 256,
                                             .mamba_heads = 8,
                                             .mamba_head_dim = 32,
                                             .state_dim = 32,
                                             .groups = 2,
                                             .mamba_norm = false}> {
  static constexpr std::string_view kName = "test-falcon-h1";
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_TEST_FALCON_H1_H_
