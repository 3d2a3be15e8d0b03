// Granite 4 without Mamba2 layers: full attention with rotary positions in every layer, and
// multipliers of embeddings, branches, attention and logits.
#ifndef INLAY_CONFIGS_GRANITE_H_
#define INLAY_CONFIGS_GRANITE_H_

#include <string_view>

#include "configs/config.h"
#include "configs/metadata.h"

namespace inlay {

// What differs between the members of the family.
struct GraniteShape {
  int vocab_size = 100'352;
  int model_dim = 0;
  int layers = 40;
  int heads = 0;
  int kv_heads = 0;
  int hidden = 0;  // of the MLP
  // Multipliers.
  int embedding = 12;
  int attention_divisor = 0;       // query-key products are divided by it
  int residual_thousandths = 220;  // 0.22
  int logit_divisor = 0;
};

template <GraniteShape kShape>
struct Granite : ConfigDefaults {
  static constexpr std::string_view kArchitecture = "granite";
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
  // Converters reorder the rows of attn_q and attn_k, so that pairs are neighbours.
  static constexpr Rope kRope{.base = 10'000'000, .interleaved = true};
  static constexpr Ratio kResidual{.num = kShape.residual_thousandths, .den = 1000};
  using Layers =
      Repeat<kShape.layers, Layer<PreNorm, Mixers<Scaled<FullAttention<kHeads, kRope>, kResidual>>,
                                  Scaled<GatedMlp<kShape.hidden, Activation::kSilu>, kResidual>>>;

  template <class Config, class Visitor>
  static void Metadata(Visitor& v) {
    CommonMetadata<Config>(v);
    v.Int("expert_count", 0, 0);
    v.Float("embedding_scale", Config::kEmbeddingScale, 1);
    v.Float("residual_scale", BranchMultiplier<Config>().value(), 1);
    v.Float("logit_scale", Config::kLogitDivisor, 1);
    v.Flag("rope.scaling.finetuned", true, true);  // the architecture's switch for rope
  }
};

// huggingface.co/ibm-granite/granite-4.0-350m, config.json
struct Granite_350m : Granite<GraniteShape{.model_dim = 1024,
                                           .layers = 28,
                                           .heads = 16,
                                           .kv_heads = 4,
                                           .hidden = 2048,
                                           .attention_divisor = 64,
                                           .residual_thousandths = 263,
                                           .logit_divisor = 4}> {
  static constexpr std::string_view kName = "granite-4.0-350m";
};

// huggingface.co/ibm-granite/granite-4.0-1b, config.json
struct Granite_1b : Granite<GraniteShape{.model_dim = 2048,
                                         .heads = 16,
                                         .kv_heads = 4,
                                         .hidden = 4096,
                                         .attention_divisor = 128,
                                         .logit_divisor = 8}> {
  static constexpr std::string_view kName = "granite-4.0-1b";
};

// huggingface.co/ibm-granite/granite-4.0-micro, config.json. Files of granite-4.1-3b have the same
// numbers, and fit this config too.
struct Granite_Micro : Granite<GraniteShape{.model_dim = 2560,
                                            .heads = 40,
                                            .kv_heads = 8,
                                            .hidden = 8192,
                                            .attention_divisor = 64,
                                            .logit_divisor = 10}> {
  static constexpr std::string_view kName = "granite-4.0-micro";
};

// huggingface.co/ibm-granite/granite-4.2-3b, config.json. Of the multipliers only that of attention
// is left.
struct Granite_4_2_3b : Granite<GraniteShape{.model_dim = 2560,
                                             .heads = 40,
                                             .kv_heads = 8,
                                             .hidden = 8192,
                                             .embedding = 1,
                                             .attention_divisor = 64,
                                             .residual_thousandths = 1000,
                                             .logit_divisor = 1}> {
  static constexpr std::string_view kName = "granite-4.2-3b";
  static constexpr bool kTiedOutput = false;
  static constexpr ChatTemplate kChatTemplate = ChatTemplate::kChatMl;
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_GRANITE_H_
