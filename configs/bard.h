// Bard: the demo family, with Mamba2, sliding and full attention in one model.
#ifndef INLAY_CONFIGS_BARD_H_
#define INLAY_CONFIGS_BARD_H_

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
  static constexpr float kEmbeddingScale = 16.0f;  // sqrt(256)

  static constexpr AttentionShape kHeads{
      .heads = 4, .kv_heads = 2, .head_dim = 64, .qk_norm = true};
  using Mlp = GatedMlp<640, Activation::kGeluTanh>;
  using Ssm =
      Layer<PreNorm,
            Mixers<Mamba2<Mamba2Shape{
                .heads = 16, .head_dim = 32, .state_dim = 64, .groups = 1, .conv_width = 4}>>,
            Mlp>;
  using Sliding =
      Layer<PreNorm, Mixers<SlidingWindowAttention<kHeads, Rope{.base = 10'000}, 64>>, Mlp>;
  using Full = Layer<PreNorm, Mixers<FullAttention<kHeads, Rope{.base = 1'000'000}>>, Mlp>;
  using Layers = Repeat<2, Ssm, Sliding, Ssm, Full>;

  template <class Config, class Visitor>
  static void Metadata(Visitor& v) {
    CommonMetadata<Config>(v);
    v.Float("embedding_scale", Config::kEmbeddingScale);
    v.Float("residual_scale", BranchMultiplier<Config>().value());
    v.Float("logit_scale", Config::kLogitDivisor);
    v.Text("hidden_activation", "gelu_pytorch_tanh");
    v.Texts("layer_kinds", MixerNames<Config>());
  }
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_BARD_H_
