// Gemma 2: sliding and full attention layers in turn, soft-capped scores and logits.
#ifndef INLAY_CONFIGS_GEMMA2_H_
#define INLAY_CONFIGS_GEMMA2_H_

#include <string_view>

#include "configs/config.h"
#include "configs/metadata.h"

namespace inlay {

// What differs between the members of the family.
struct Gemma2Shape {
  int vocab_size = 256'000;
  int model_dim = 0;
  int layers = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 256;
  int hidden = 0;  // of the MLP
  int window = 4096;
  int query_scalar = 0;  // query-key products are divided by its square root; 0: head_dim
};

template <Gemma2Shape kShape>
struct Gemma2 : ConfigDefaults {
  static constexpr std::string_view kArchitecture = "gemma2";
  static constexpr int kVocabSize = kShape.vocab_size;
  static constexpr int kModelDim = kShape.model_dim;
  static constexpr float kNormEpsilon = 1e-6f;
  static constexpr float kEmbeddingScale = static_cast<float>(ConstexprSqrt(kShape.model_dim));
  static constexpr float kLogitSoftCap = 30.0f;
  static constexpr ChatTemplate kChatTemplate = ChatTemplate::kGemma;
  static constexpr SamplingDefaults kSampling{.temperature = 1.0f, .top_k = 64, .top_p = 0.95f};

  static constexpr AttentionShape kHeads{.heads = kShape.heads,
                                         .kv_heads = kShape.kv_heads,
                                         .head_dim = kShape.head_dim,
                                         .query_scalar = kShape.query_scalar,
                                         .soft_cap = 50};
  static constexpr AttentionKeys kAttentionKeys{
      .stores_scale = false, .absent_soft_cap = 50, .absent_window = 4096};
  static constexpr Rope kRope{.base = 10'000};
  using Mlp = GatedMlp<kShape.hidden, Activation::kGeluTanh>;
  using Sliding =
      Layer<PreAndPostNorm, Mixers<SlidingWindowAttention<kHeads, kRope, kShape.window>>, Mlp>;
  using Full = Layer<PreAndPostNorm, Mixers<FullAttention<kHeads, kRope>>, Mlp>;
  using Layers = Repeat<kShape.layers / 2, Sliding, Full>;
  static_assert(kShape.layers % 2 == 0, "Gemma 2 alternates sliding and full layers");

  template <class Config, class Visitor>
  static void Metadata(Visitor& v) {
    CommonMetadata<Config>(v);
    v.Period("attention.sliding_window_pattern", kShape.layers, 2, 2);
    v.Float("final_logit_softcapping", Config::kLogitSoftCap, 30);
  }
};

// huggingface.co/google/gemma-2-2b, config.json
struct Gemma2_2b
    : Gemma2<Gemma2Shape{
          .model_dim = 2304, .layers = 26, .heads = 8, .kv_heads = 4, .hidden = 9216}> {
  static constexpr std::string_view kName = "gemma-2-2b";
};

// huggingface.co/google/gemma-2-9b, config.json
struct Gemma2_9b
    : Gemma2<Gemma2Shape{
          .model_dim = 3584, .layers = 42, .heads = 16, .kv_heads = 8, .hidden = 14'336}> {
  static constexpr std::string_view kName = "gemma-2-9b";
};

// huggingface.co/google/gemma-2-27b, config.json. Its query_pre_attn_scalar is model dim / heads.
struct Gemma2_27b : Gemma2<Gemma2Shape{.model_dim = 4608,
                                       .layers = 46,
                                       .heads = 32,
                                       .kv_heads = 16,
                                       .head_dim = 128,
                                       .hidden = 36'864,
                                       .query_scalar = 4608 / 32}> {
  static constexpr std::string_view kName = "gemma-2-27b";
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_GEMMA2_H_
