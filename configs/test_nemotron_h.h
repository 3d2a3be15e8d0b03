// Small members of the Nemotron-H family for tests: random weights, no vocabulary.
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

// Groups of experts that work in a dimension of their own.
struct TestNemotronHMoe : NemotronH<NemotronHShape{.vocab_size = 512,
                                                   .model_dim = 256,
                                                   .layers = "MEM*EM",
                                                   .heads = 4,
                                                   .kv_heads = 2,
                                                   .head_dim = 64,
                                                   .hidden = 32,
                                                   .mamba_heads = 8,
                                                   .mamba_head_dim = 32,
                                                   .state_dim = 32,
                                                   .groups = 4,
                                                   .experts = 16,
                                                   .used_experts = 4,
                                                   .shared_hidden = 64,
                                                   .expert_groups = 4,
                                                   .used_expert_groups = 2,
                                                   .latent = 128}> {
  static constexpr std::string_view kName = "test-nemotron-h-moe";
};

// As Nemotron 3 Nano: one group, in the model's dimension.
struct TestNemotronHMoeNoLatent : NemotronH<NemotronHShape{.vocab_size = 512,
                                                           .model_dim = 256,
                                                           .layers = "ME*EM",
                                                           .heads = 4,
                                                           .kv_heads = 2,
                                                           .head_dim = 64,
                                                           .hidden = 32,
                                                           .mamba_heads = 8,
                                                           .mamba_head_dim = 32,
                                                           .state_dim = 32,
                                                           .groups = 4,
                                                           .experts = 8,
                                                           .used_experts = 3,
                                                           .shared_hidden = 64}> {
  static constexpr std::string_view kName = "test-nemotron-h-moe-nolatent";
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_TEST_NEMOTRON_H_H_
