// Bard: the demo family, with all three layer kinds in one model.
#ifndef INLAY_CONFIGS_BARD_H_
#define INLAY_CONFIGS_BARD_H_

#include <cstdint>
#include <string_view>

#include "configs/config.h"
#include "configs/metadata.h"

namespace inlay {

// 6.7 M parameters trained on the plays of Shakespeare; models/README.md tells how.
struct Bard : ConfigDefaults {
  static constexpr std::string_view kName = "bard";
  static constexpr std::string_view kArchitecture = "bard";
  static constexpr int kVocabSize = 1024;
  static constexpr int kModelDim = 256;
  static constexpr float kNormEpsilon = 1e-6f;
  static constexpr float kEmbeddingScale = 16.0f;   // sqrt(256)
  static constexpr float kAttentionScale = 0.125f;  // 1 / sqrt(64)

  static constexpr AttentionShape kHeads{
      .heads = 4, .kv_heads = 2, .head_dim = 64, .qk_norm = true};
  using Mlp = GatedMlp<640, Activation::kGeluTanh>;
  using Ssm = Mamba2<
      Mamba2Shape{.heads = 16, .head_dim = 32, .state_dim = 64, .groups = 1, .conv_width = 4}, Mlp>;
  using Sliding = SlidingWindowAttention<kHeads, Rope{.base = 10'000}, 64, Mlp>;
  using Full = FullAttention<kHeads, Rope{.base = 1'000'000}, Mlp>;
  using Layers = Repeat<2, Ssm, Sliding, Ssm, Full>;

  template <class Visitor>
  static void Metadata(Visitor& v) {
    CommonMetadata<Bard>(v);
    AttentionMetadata<Bard>(v);
    Mamba2Metadata<Bard>(v);
    v.Int("feed_forward_length", Mlp::kHidden);
    v.Int("attention.sliding_window", Sliding::kWindow);
    v.Float("rope.freq_base", Full::kRope.base);
    v.Float("rope.freq_base_swa", Sliding::kRope.base);
    v.Int("rope.dimension_count", kHeads.head_dim);
    v.Float("embedding_scale", kEmbeddingScale);
    v.Float("residual_scale", kResidualScale);
    v.Float("attention.scale", kAttentionScale);
    v.Float("logit_scale", kLogitDivisor);
    v.Text("hidden_activation", "gelu_pytorch_tanh");
    v.Texts("layer_kinds",
            PerLayerValues<std::string_view, Bard>([]<class L>() -> std::string_view {
              if constexpr (L::kKind == LayerKind::kMamba2) return "mamba2";
              if constexpr (L::kKind == LayerKind::kSlidingWindowAttention) return "swa";
              return "attention";
            }));
  }
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_BARD_H_
