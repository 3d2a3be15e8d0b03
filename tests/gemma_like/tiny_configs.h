// Configs small enough for hundreds of thousands of steps, with every layer kind and short windows
// and periods.
#ifndef INLAY_TESTS_GEMMA_LIKE_TINY_CONFIGS_H_
#define INLAY_TESTS_GEMMA_LIKE_TINY_CONFIGS_H_

#include <string_view>

#include "configs/config.h"
#include "configs/layers.h"
#include "configs/metadata.h"
#include "configs/pattern.h"

namespace inlay {

struct TinyBase : ConfigDefaults {
  static constexpr std::string_view kArchitecture = "tiny";
  static constexpr int kVocabSize = 48;
  static constexpr int kModelDim = 32;
  static constexpr float kNormEpsilon = 1e-6f;
  static constexpr float kEmbeddingScale = 5.0f;
  static constexpr float kAttentionScale = 0.25f;  // 1 / sqrt(16)

  static constexpr AttentionShape kHeads{
      .heads = 4, .kv_heads = 2, .head_dim = 16, .qk_norm = true};
  using Mlp = GatedMlp<48, Activation::kGeluTanh>;
  using Sliding = SlidingWindowAttention<kHeads, Rope{.base = 10'000}, 20, Mlp>;
  using Full = FullAttention<kHeads, Rope{.base = 1'000'000}, Mlp>;
};

// As Bard: all three kinds.
struct TinyBard : TinyBase {
  static constexpr std::string_view kName = "tiny-bard";
  using Ssm =
      Mamba2<Mamba2Shape{.heads = 4, .head_dim = 8, .state_dim = 16, .groups = 1, .conv_width = 4},
             Mlp>;
  using Layers = Chain<Ssm, Sliding, Ssm, Full>;
  static void Metadata(auto& v) {
    CommonMetadata<TinyBard>(v);
    AttentionMetadata<TinyBard>(v);
    Mamba2Metadata<TinyBard>(v);
  }
};

// As Gemma 2 and 3: attention only, norms on both sides, soft caps, and a window longer than two
// blocks.
struct TinyGemma : TinyBase {
  static constexpr std::string_view kName = "tiny-gemma";
  static constexpr NormPlacement kNormPlacement = NormPlacement::kPreAndPost;
  static constexpr float kAttentionSoftCap = 50.0f;
  static constexpr float kLogitSoftCap = 30.0f;
  using LongWindow = SlidingWindowAttention<kHeads, Rope{.base = 10'000}, 150, Mlp>;
  using Layers = Chain<Sliding, LongWindow, Full>;
  static void Metadata(auto& v) {
    CommonMetadata<TinyGemma>(v);
    AttentionMetadata<TinyGemma>(v);
  }
};

// As Granite 4 hybrid: no rotation, all multipliers, a mixture of experts with a shared one.
struct TinyGranite : TinyBase {
  static constexpr std::string_view kName = "tiny-granite";
  static constexpr float kResidualScale = 0.22f;
  static constexpr float kLogitDivisor = 3.0f;
  using Moe = MoeMlp<MoeShape{.experts = 5, .used_experts = 2, .hidden = 16, .shared_hidden = 24},
                     Activation::kSilu>;
  using Ssm =
      Mamba2<Mamba2Shape{.heads = 4, .head_dim = 8, .state_dim = 16, .groups = 1, .conv_width = 4},
             Moe>;
  using Attention = FullAttention<AttentionShape{.heads = 4, .kv_heads = 1, .head_dim = 8}, Rope{},
                                  GatedMlp<40, Activation::kSilu>>;
  using Layers = Chain<Ssm, Ssm, Attention>;
  static void Metadata(auto& v) {
    CommonMetadata<TinyGranite>(v);
    AttentionMetadata<TinyGranite>(v);
    Mamba2Metadata<TinyGranite>(v);
  }
};

// As Mamba2: nothing else, and two groups.
struct TinyMamba : TinyBase {
  static constexpr std::string_view kName = "tiny-mamba";
  static constexpr bool kTiedOutput = false;
  using Ssm =
      Mamba2<Mamba2Shape{.heads = 4, .head_dim = 16, .state_dim = 8, .groups = 2, .conv_width = 3},
             NoMlp>;
  using Layers = Repeat<3, Ssm>;
  static void Metadata(auto& v) {
    CommonMetadata<TinyMamba>(v);
    Mamba2Metadata<TinyMamba>(v);
  }
};

}  // namespace inlay

#endif  // INLAY_TESTS_GEMMA_LIKE_TINY_CONFIGS_H_
