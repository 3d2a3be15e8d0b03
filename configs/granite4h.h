// Granite 4.0-H: Mamba2 layers and a few full attention layers without position encoding; dense, or
// with routed experts and a shared one.
#ifndef INLAY_CONFIGS_GRANITE4H_H_
#define INLAY_CONFIGS_GRANITE4H_H_

#include <string_view>
#include <type_traits>

#include "configs/config.h"
#include "configs/metadata.h"

namespace inlay {

// What differs between the members of the family.
struct Granite4hShape {
  int vocab_size = 100'352;
  int model_dim = 0;
  int layers = 40;
  LayerMask attention_layers = LayersAt(5, 15, 25, 35);  // the others are Mamba2
  int heads = 0;
  int kv_heads = 0;
  int mamba_heads = 0;  // mamba_heads * mamba_head_dim is twice the model dim
  int mamba_head_dim = 64;
  int state_dim = 128;
  int hidden = 0;   // of the MLP, or of one expert
  int experts = 0;  // 0: dense
  int used_experts = 0;
  int shared_hidden = 0;  // of the shared expert
  // Multipliers.
  int embedding = 12;
  int attention_divisor = 0;       // query-key products are divided by it
  int residual_thousandths = 220;  // 0.22
  int logit_divisor = 0;
};

template <Granite4hShape kShape>
struct Granite4h : ConfigDefaults {
  static constexpr std::string_view kArchitecture = "granitehybrid";
  static constexpr int kVocabSize = kShape.vocab_size;
  static constexpr int kModelDim = kShape.model_dim;
  static constexpr float kNormEpsilon = 1e-5f;
  static constexpr float kEmbeddingScale = kShape.embedding;
  static constexpr float kLogitDivisor = kShape.logit_divisor;
  static constexpr ChatTemplate kChatTemplate = ChatTemplate::kGranite;

  static constexpr AttentionShape kHeads{
      .heads = kShape.heads,
      .kv_heads = kShape.kv_heads,
      .head_dim = Quotient(kShape.model_dim, kShape.heads),
      .query_scalar = kShape.attention_divisor * kShape.attention_divisor};
  static constexpr Mamba2Shape kSsm{.heads = kShape.mamba_heads,
                                    .head_dim = kShape.mamba_head_dim,
                                    .state_dim = kShape.state_dim};
  static constexpr MoeShape kExperts{.experts = kShape.experts,
                                     .used_experts = kShape.used_experts,
                                     .hidden = kShape.hidden,
                                     .shared_hidden = kShape.shared_hidden};
  static constexpr Ratio kResidual{.num = kShape.residual_thousandths, .den = 1000};
  using Mlp =
      Scaled<std::conditional_t<kShape.experts == 0, GatedMlp<kShape.hidden, Activation::kSilu>,
                                MoeMlp<kExperts, Activation::kSilu>>,
             kResidual>;
  // position_embedding_type: nope
  using Attending = Layer<PreNorm, Mixers<Scaled<FullAttention<kHeads, Rope{}>, kResidual>>, Mlp>;
  using Recurrent = Layer<PreNorm, Mixers<Scaled<Mamba2<kSsm>, kResidual>>, Mlp>;
  using Layers = Masked<kShape.layers, kShape.attention_layers, Attending, Recurrent>;

  template <class Config, class Visitor>
  static void Metadata(Visitor& v) {
    CommonMetadata<Config>(v);
    if constexpr (kShape.experts == 0) {
      v.Int("expert_count", 0, 0);
      v.Int("expert_used_count", 0, 0);
    } else {
      v.Int("feed_forward_length", kShape.hidden);  // of one expert
    }
    v.Float("embedding_scale", Config::kEmbeddingScale, 1);
    v.Float("residual_scale", BranchMultiplier<Config>().value(), 1);
    v.Float("logit_scale", Config::kLogitDivisor, 1);
    v.Flag("rope.scaling.finetuned", false, true);  // the architecture's switch for rope
  }
};

// huggingface.co/ibm-granite/granite-4.0-h-350m, config.json
struct Granite4h_350m : Granite4h<Granite4hShape{.model_dim = 768,
                                                 .layers = 32,
                                                 .attention_layers = LayersAt(10, 13, 17, 27),
                                                 .heads = 12,
                                                 .kv_heads = 4,
                                                 .mamba_heads = 48,
                                                 .mamba_head_dim = 32,
                                                 .hidden = 2048,
                                                 .attention_divisor = 64,
                                                 .residual_thousandths = 246,
                                                 .logit_divisor = 3}> {
  static constexpr std::string_view kName = "granite-4.0-h-350m";
};

// huggingface.co/ibm-granite/granite-4.0-h-1b, config.json
struct Granite4h_1b : Granite4h<Granite4hShape{.model_dim = 1536,
                                               .heads = 12,
                                               .kv_heads = 4,
                                               .mamba_heads = 48,
                                               .hidden = 4096,
                                               .attention_divisor = 128,
                                               .logit_divisor = 6}> {
  static constexpr std::string_view kName = "granite-4.0-h-1b";
};

// huggingface.co/ibm-granite/granite-4.0-h-micro, config.json
struct Granite4h_Micro : Granite4h<Granite4hShape{.model_dim = 2048,
                                                  .heads = 32,
                                                  .kv_heads = 8,
                                                  .mamba_heads = 64,
                                                  .hidden = 8192,
                                                  .attention_divisor = 64,
                                                  .logit_divisor = 8}> {
  static constexpr std::string_view kName = "granite-4.0-h-micro";
};

// huggingface.co/ibm-granite/granite-4.0-h-tiny, config.json
struct Granite4h_Tiny : Granite4h<Granite4hShape{.model_dim = 1536,
                                                 .heads = 12,
                                                 .kv_heads = 4,
                                                 .mamba_heads = 48,
                                                 .hidden = 512,
                                                 .experts = 64,
                                                 .used_experts = 6,
                                                 .shared_hidden = 1024,
                                                 .attention_divisor = 128,
                                                 .logit_divisor = 6}> {
  static constexpr std::string_view kName = "granite-4.0-h-tiny";
};

// huggingface.co/ibm-granite/granite-4.0-h-small, config.json
struct Granite4h_Small : Granite4h<Granite4hShape{.model_dim = 4096,
                                                  .heads = 32,
                                                  .kv_heads = 8,
                                                  .mamba_heads = 128,
                                                  .hidden = 768,
                                                  .experts = 72,
                                                  .used_experts = 10,
                                                  .shared_hidden = 1536,
                                                  .attention_divisor = 128,
                                                  .logit_divisor = 16}> {
  static constexpr std::string_view kName = "granite-4.0-h-small";
};

// 3.2 M parameters trained on the plays of Shakespeare: Bard's text in this family's shape.
struct BardGraniteH : Granite4h<Granite4hShape{.vocab_size = 1024,
                                               .model_dim = 192,
                                               .layers = 6,
                                               .attention_layers = LayersAt(2, 5),
                                               .heads = 6,
                                               .kv_heads = 2,
                                               .mamba_heads = 12,
                                               .mamba_head_dim = 32,
                                               .state_dim = 64,
                                               .hidden = 512,
                                               .embedding = 4,
                                               .attention_divisor = 32,
                                               .residual_thousandths = 500,
                                               .logit_divisor = 2}> {
  static constexpr std::string_view kName = "bard-granite-h";
  static constexpr ChatTemplate kChatTemplate = ChatTemplate::kNone;
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_GRANITE4H_H_
