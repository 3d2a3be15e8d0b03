// EmbeddingGemma: Gemma 3's layers with attention to both sides, which embed texts.
#ifndef INLAY_CONFIGS_GEMMA_EMBEDDING_H_
#define INLAY_CONFIGS_GEMMA_EMBEDDING_H_

#include <string_view>

#include "configs/config.h"
#include "configs/metadata.h"

namespace inlay {

// What differs between the members of the family.
struct GemmaEmbeddingShape {
  int vocab_size = 262'144;
  int model_dim = 0;
  int layers = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 256;
  int hidden = 0;  // of the MLP
  int window = 0;
  int full_every = 6;  // layers full_every - 1, 2 * full_every - 1, ... are full
  int max_tokens = 0;
  int dense_dim = 0;
};

template <GemmaEmbeddingShape kShape>
struct GemmaEmbedding : ConfigDefaults {
  static constexpr std::string_view kArchitecture = "gemma-embedding";
  static constexpr int kVocabSize = kShape.vocab_size;
  static constexpr int kModelDim = kShape.model_dim;
  static constexpr float kNormEpsilon = 1e-6f;
  static constexpr float kEmbeddingScale = static_cast<float>(ConstexprSqrt(kShape.model_dim));
  static constexpr TextEmbedding kEmbedding{
      .pooling = Pooling::kMean, .max_tokens = kShape.max_tokens, .dense_dim = kShape.dense_dim};

  static constexpr AttentionShape kHeads{.heads = kShape.heads,
                                         .kv_heads = kShape.kv_heads,
                                         .head_dim = kShape.head_dim,
                                         .qk_norm = true,
                                         .bidirectional = true};
  static constexpr AttentionKeys kAttentionKeys{.stores_scale = false, .absent_causal = false};
  using Mlp = GatedMlp<kShape.hidden, Activation::kGeluTanh>;
  using Sliding =
      Layer<PreAndPostNorm,
            Mixers<SlidingWindowAttention<kHeads, Rope{.base = 10'000}, kShape.window>>, Mlp>;
  using Full = Layer<PreAndPostNorm, Mixers<FullAttention<kHeads, Rope{.base = 1'000'000}>>, Mlp>;
  using Layers = Periodic<kShape.layers, kShape.full_every, Sliding, Full>;

  template <class Config, class Visitor>
  static void Metadata(Visitor& v) {
    constexpr int kMean = 1;
    CommonMetadata<Config>(v);
    v.Period("attention.sliding_window_pattern", kShape.layers, kShape.full_every, 6);
    v.Int("pooling_type", kMean);
    // Only files with the two matrices have these.
    v.Int("dense_2_feat_in", kShape.model_dim, kShape.model_dim);
    v.Int("dense_2_feat_out", kShape.dense_dim, kShape.dense_dim);
    v.Int("dense_3_feat_in", kShape.dense_dim, kShape.dense_dim);
    v.Int("dense_3_feat_out", kShape.model_dim, kShape.model_dim);
  }
};

// huggingface.co/google/embeddinggemma-300m, config.json. The window in its files is the one of
// config.json, of which half is before a token and half after it.
struct EmbeddingGemma_300m : GemmaEmbedding<GemmaEmbeddingShape{.model_dim = 768,
                                                                .layers = 24,
                                                                .heads = 3,
                                                                .kv_heads = 1,
                                                                .hidden = 1152,
                                                                .window = 512,
                                                                .max_tokens = 2048,
                                                                .dense_dim = 3072}> {
  static constexpr std::string_view kName = "embeddinggemma-300m";
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_GEMMA_EMBEDDING_H_
