// Falcon-H1: full attention and Mamba2 side by side in every layer, each followed by a gated MLP.
#ifndef INLAY_CONFIGS_FALCON_H1_H_
#define INLAY_CONFIGS_FALCON_H1_H_

#include <string_view>

#include "configs/config.h"
#include "configs/metadata.h"

namespace inlay {

// What differs between the members of the family.
struct FalconH1Shape {
  int vocab_size = 0;
  int model_dim = 0;
  int layers = 0;
  int heads = 0;
  int kv_heads = 2;
  int head_dim = 128;
  int hidden = 0;  // of the MLP
  int mamba_heads = 0;
  int mamba_head_dim = 0;
  int state_dim = 256;
  int groups = 1;
  bool mamba_norm = true;
  bool tied_output = false;
};

// Files write the name of the norm before the MLP without its end.
struct FalconH1Norms : PreNorm {
  static constexpr std::string_view kMlpNormTensor = "ffn_norm";
};

template <FalconH1Shape kShape>
struct FalconH1 : ConfigDefaults {
  static constexpr std::string_view kArchitecture = "falcon-h1";
  static constexpr int kVocabSize = kShape.vocab_size;
  static constexpr int kModelDim = kShape.model_dim;
  static constexpr float kNormEpsilon = 1e-5f;
  static constexpr bool kTiedOutput = kShape.tied_output;
  static constexpr ChatTemplate kChatTemplate = ChatTemplate::kChatMl;

  static constexpr AttentionShape kHeads{
      .heads = kShape.heads, .kv_heads = kShape.kv_heads, .head_dim = kShape.head_dim};
  static constexpr Rope kRope{.base = 100'000'000'000};
  static constexpr Mamba2Shape kSsm{.heads = kShape.mamba_heads,
                                    .head_dim = kShape.mamba_head_dim,
                                    .state_dim = kShape.state_dim,
                                    .groups = kShape.groups,
                                    .normed = kShape.mamba_norm};
  using Layers =
      Repeat<kShape.layers, Layer<FalconH1Norms, Mixers<FullAttention<kHeads, kRope>, Mamba2<kSsm>>,
                                  GatedMlp<kShape.hidden, Activation::kSilu>>>;

  template <class Config, class Visitor>
  static void Metadata(Visitor& v) {
    CommonMetadata<Config>(v);
    // The checkpoints' multipliers of branches are part of the weights in today's files. The first
    // files have weights without them and these keys.
    v.Flag("ssm.has_mup", false, false);
    v.Float("mlp_gate_multiplier", 1, 1);
    v.Float("mlp_down_multiplier", 1, 1);
  }
};

// The numbers are those of the config.json of huggingface.co/tiiuae/Falcon-H1-0.5B-Instruct and its
// siblings. Where sources disagree about a row of the vocabulary (65'536 or 65'537, 130'048 or
// 130'049), here is the smaller number: files may have more rows.
struct FalconH1_0_5b : FalconH1<FalconH1Shape{.vocab_size = 32'784,
                                              .model_dim = 1024,
                                              .layers = 36,
                                              .heads = 8,
                                              .head_dim = 64,
                                              .hidden = 2048,
                                              .mamba_heads = 24,
                                              .mamba_head_dim = 64,
                                              .state_dim = 128,
                                              .mamba_norm = false}> {
  static constexpr std::string_view kName = "falcon-h1-0.5b";
};

struct FalconH1_1_5b : FalconH1<FalconH1Shape{.vocab_size = 65'536,
                                              .model_dim = 2048,
                                              .layers = 24,
                                              .heads = 8,
                                              .hidden = 4608,
                                              .mamba_heads = 48,
                                              .mamba_head_dim = 64}> {
  static constexpr std::string_view kName = "falcon-h1-1.5b";
};

struct FalconH1_1_5bDeep : FalconH1<FalconH1Shape{.vocab_size = 65'536,
                                                  .model_dim = 1280,
                                                  .layers = 66,
                                                  .heads = 6,
                                                  .hidden = 3072,
                                                  .mamba_heads = 24,
                                                  .mamba_head_dim = 64}> {
  static constexpr std::string_view kName = "falcon-h1-1.5b-deep";
};

struct FalconH1_3b : FalconH1<FalconH1Shape{.vocab_size = 65'536,
                                            .model_dim = 2560,
                                            .layers = 32,
                                            .heads = 10,
                                            .hidden = 6144,
                                            .mamba_heads = 32,
                                            .mamba_head_dim = 128}> {
  static constexpr std::string_view kName = "falcon-h1-3b";
};

struct FalconH1_7b : FalconH1<FalconH1Shape{.vocab_size = 130'048,
                                            .model_dim = 3072,
                                            .layers = 44,
                                            .heads = 12,
                                            .hidden = 12'288,
                                            .mamba_heads = 24,
                                            .mamba_head_dim = 128}> {
  static constexpr std::string_view kName = "falcon-h1-7b";
};

struct FalconH1_34b : FalconH1<FalconH1Shape{.vocab_size = 261'120,
                                             .model_dim = 5120,
                                             .layers = 72,
                                             .heads = 20,
                                             .kv_heads = 4,
                                             .hidden = 21'504,
                                             .mamba_heads = 32,
                                             .mamba_head_dim = 128,
                                             .groups = 2}> {
  static constexpr std::string_view kName = "falcon-h1-34b";
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_FALCON_H1_H_
