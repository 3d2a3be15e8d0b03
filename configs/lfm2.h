// LFM2 and LFM2.5: gated short convolutions with a few full attention layers between them; dense,
// or with routed experts after the first layers.
#ifndef INLAY_CONFIGS_LFM2_H_
#define INLAY_CONFIGS_LFM2_H_

#include <string_view>

#include "configs/config.h"
#include "configs/metadata.h"

namespace inlay {

// What differs between the members of the family.
struct Lfm2Shape {
  int vocab_size = 65'536;
  int model_dim = 0;
  int layers = 16;
  LayerMask attention_layers = LayersAt(2, 5, 8, 10, 12, 14);  // the others are ShortConv
  int heads = 0;
  int kv_heads = 8;
  int hidden = 0;  // of the MLP, as files store it: config.json has the number before its rounding
  // With experts, the layers from dense_layers on have them in place of the MLP.
  int experts = 0;  // 0: dense
  int used_experts = 0;
  int expert_hidden = 0;
  int dense_layers = 2;
};

template <Lfm2Shape kShape>
struct Lfm2 : ConfigDefaults {
  static constexpr bool kHasExperts = kShape.experts > 0;
  static constexpr std::string_view kArchitecture = kHasExperts ? "lfm2moe" : "lfm2";
  static constexpr int kVocabSize = kShape.vocab_size;
  static constexpr int kModelDim = kShape.model_dim;
  static constexpr float kNormEpsilon = 1e-5f;
  // The norm before the output matrix, despite its name; embeddings are not normalised.
  static constexpr std::string_view kOutputNormTensor = "token_embd_norm.weight";
  static constexpr ChatTemplate kChatTemplate = ChatTemplate::kChatMl;
  static constexpr SamplingDefaults kSampling{.temperature = 0.3f, .min_p = 0.15f};

  static constexpr AttentionShape kHeads{.heads = kShape.heads,
                                         .kv_heads = kShape.kv_heads,
                                         .head_dim = Quotient(kShape.model_dim, kShape.heads),
                                         .qk_norm = true};
  static constexpr AttentionKeys kAttentionKeys{.stores_scale = false};
  static constexpr ShortConvShape kConv{.channels = kShape.model_dim};
  using Mlp = GatedMlp<kShape.hidden, Activation::kSilu>;
  using Moe = MoeMlp<MoeShape{.experts = kShape.experts,
                              .used_experts = kShape.used_experts,
                              .hidden = kShape.expert_hidden,
                              .routing = Routing::kBiasedLogistic},
                     Activation::kSilu>;
  template <class M>
  using Attending = Layer<PreNorm, Mixers<FullAttention<kHeads, Rope{.base = 1'000'000}>>, M>;
  template <class M>
  using Convolving = Layer<PreNorm, Mixers<ShortConv<kConv>>, M>;
  static constexpr int kDense = kHasExperts ? kShape.dense_layers : kShape.layers;
  using Layers = Chain<Masked<kDense, kShape.attention_layers, Attending<Mlp>, Convolving<Mlp>>,
                       Masked<kShape.layers - kDense, (kShape.attention_layers >> kDense),
                              Attending<Moe>, Convolving<Moe>>>;

  template <class Config, class Visitor>
  static void Metadata(Visitor& v) {
    CommonMetadata<Config>(v);
    v.Int("attention.sliding_window", 0, 0);  // of all attention layers, where a file has it
    if constexpr (kHasExperts) {
      v.Int("leading_dense_block_count", kShape.dense_layers);
      v.Int("expert_feed_forward_length", kShape.expert_hidden);
      v.Int("expert_gating_func", 2);  // logistic
    }
  }
};

// The numbers are those of the published GGUF files: huggingface.co/LiquidAI/LFM2-350M-GGUF and its
// siblings. LFM2.5 has the shapes of LFM2 where a size is in both.
struct Lfm2_230m : Lfm2<Lfm2Shape{.model_dim = 1024,
                                  .layers = 14,
                                  .attention_layers = LayersAt(2, 4, 6, 8, 10, 12),
                                  .heads = 16,
                                  .hidden = 2560}> {
  static constexpr std::string_view kName = "lfm2.5-230m";
};

struct Lfm2_350m : Lfm2<Lfm2Shape{.model_dim = 1024, .heads = 16, .hidden = 4608}> {
  static constexpr std::string_view kName = "lfm2-350m";
};

struct Lfm2_700m : Lfm2<Lfm2Shape{.model_dim = 1536, .heads = 24, .hidden = 6912}> {
  static constexpr std::string_view kName = "lfm2-700m";
};

struct Lfm2_1_2b : Lfm2<Lfm2Shape{.model_dim = 2048, .heads = 32, .hidden = 8192}> {
  static constexpr std::string_view kName = "lfm2-1.2b";
};

struct Lfm2_2_6b : Lfm2<Lfm2Shape{.model_dim = 2048,
                                  .layers = 30,
                                  .attention_layers = LayersAt(2, 5, 9, 13, 17, 21, 24, 27),
                                  .heads = 32,
                                  .hidden = 10'752}> {
  static constexpr std::string_view kName = "lfm2-2.6b";
};

// huggingface.co/LiquidAI/LFM2-8B-A1B, config.json; LFM2.5-8B-A1B has a larger vocabulary.
struct Lfm2_8b_a1b : Lfm2<Lfm2Shape{.model_dim = 2048,
                                    .layers = 24,
                                    .attention_layers = LayersAt(2, 6, 10, 14, 18, 21),
                                    .heads = 32,
                                    .hidden = 7168,
                                    .experts = 32,
                                    .used_experts = 4,
                                    .expert_hidden = 1792}> {
  static constexpr std::string_view kName = "lfm2-8b-a1b";
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_LFM2_H_
