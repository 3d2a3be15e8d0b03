// Nemotron-H, Nemotron Nano 2 and Nemotron 3 Nano: one part per layer, which is Mamba2, full
// attention without position encoding, an MLP, or routed experts and a shared one.
#ifndef INLAY_CONFIGS_NEMOTRON_H_H_
#define INLAY_CONFIGS_NEMOTRON_H_H_

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "configs/config.h"
#include "configs/metadata.h"

namespace inlay {

// What differs between the members of the family.
struct NemotronHShape {
  int vocab_size = 131'072;
  int model_dim = 0;
  LayerLetters layers;  // M: Mamba2, *: attention, -: MLP, E: experts
  int heads = 0;
  int kv_heads = 8;
  int head_dim = 128;
  int hidden = 0;  // of the MLPs, or of one expert
  int mamba_heads = 0;
  int mamba_head_dim = 0;
  int state_dim = 128;
  int groups = 8;   // of Mamba2
  int experts = 0;  // 0: dense
  int used_experts = 0;
  int shared_hidden = 0;  // of the shared expert
  int expert_groups = 1;
  int used_expert_groups = 1;
  int latent = 0;  // the dimension in which experts work; 0: the model's
};

template <NemotronHShape kShape>
struct NemotronH : ConfigDefaults {
  static constexpr bool kHasExperts = kShape.experts > 0;
  static constexpr std::string_view kArchitecture = kHasExperts ? "nemotron_h_moe" : "nemotron_h";
  static constexpr int kVocabSize = kShape.vocab_size;
  static constexpr int kModelDim = kShape.model_dim;
  static constexpr float kNormEpsilon = 1e-5f;
  static constexpr bool kTiedOutput = false;

  static constexpr AttentionShape kHeads{
      .heads = kShape.heads, .kv_heads = kShape.kv_heads, .head_dim = kShape.head_dim};
  static constexpr Mamba2Shape kSsm{.heads = kShape.mamba_heads,
                                    .head_dim = kShape.mamba_head_dim,
                                    .state_dim = kShape.state_dim,
                                    .groups = kShape.groups};
  static constexpr MoeShape kExperts{.experts = kShape.experts,
                                     .used_experts = kShape.used_experts,
                                     .hidden = kShape.hidden,
                                     .shared_hidden = kShape.shared_hidden,
                                     .routing = Routing::kBiasedLogistic,
                                     .groups = kShape.expert_groups,
                                     .used_groups = kShape.used_expert_groups,
                                     .scale = {.num = 5, .den = 2},
                                     .latent = kShape.latent};
  template <char kLetter>
  using MlpOf = std::conditional_t<kLetter == 'E', MoeMlp<kExperts, Activation::kSquaredRelu>,
                                   SquaredReluMlp<kShape.hidden>>;
  template <char kLetter>
  using LayerOf = std::conditional_t<
      kLetter == 'M', Layer<PreNorm, Mixers<Mamba2<kSsm>>>,
      std::conditional_t<kLetter == '*', Layer<PreNorm, Mixers<FullAttention<kHeads, Rope{}>>>,
                         Layer<PreNorm, Mixers<>, MlpOf<kLetter>>>>;
  using Layers = Spelled<kShape.layers, LayerOf>;

  template <class Config, class Visitor>
  static void Metadata(Visitor& v) {
    CommonMetadata<Config>(v);
    // Used only by draft blocks, which are not run; llama.cpp demands the key in every file.
    v.Float("attention.layer_norm_epsilon", Config::kNormEpsilon, Config::kNormEpsilon);
    if constexpr (kHasExperts) {
      // For each layer, as in dense members; of experts that of one.
      v.Ints("feed_forward_length", PerLayerValues<int64_t, Config>(
                                        []<class L>() { return L::kHasMlp ? kShape.hidden : 0; }));
      v.Int("expert_feed_forward_length", kShape.hidden);
      v.Int("expert_shared_count", 1, 1);
      v.Flag("expert_weights_norm", true);
      v.Float("expert_weights_scale", kExperts.scale.value());
      v.Int("expert_group_count", kShape.expert_groups, 1);
      v.Int("expert_group_used_count", kShape.used_expert_groups, 1);
      v.Int("moe_latent_size", kShape.latent, 0);
    }
  }
};

// The numbers are those of the config.json of huggingface.co/nvidia/Nemotron-H-8B-Base-8K and its
// siblings.
struct NemotronH_4b
    : NemotronH<NemotronHShape{.model_dim = 3072,
                               .layers = "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-",
                               .heads = 32,
                               .hidden = 12'288,
                               .mamba_heads = 112,
                               .mamba_head_dim = 64}> {
  static constexpr std::string_view kName = "nemotron-h-4b";
};

struct NemotronH_8b
    : NemotronH<NemotronHShape{.model_dim = 4096,
                               .layers = "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-",
                               .heads = 32,
                               .hidden = 21'504,
                               .mamba_heads = 128,
                               .mamba_head_dim = 64}> {
  static constexpr std::string_view kName = "nemotron-h-8b";
};

struct NemotronNano2_9b
    : NemotronH<NemotronHShape{.model_dim = 4480,
                               .layers = "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-",
                               .heads = 40,
                               .hidden = 15'680,
                               .mamba_heads = 128,
                               .mamba_head_dim = 80}> {
  static constexpr std::string_view kName = "nemotron-nano-9b-v2";
};

struct NemotronNano2_12b
    : NemotronH<NemotronHShape{
          .model_dim = 5120,
          .layers = "M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M-",
          .heads = 40,
          .hidden = 20'480,
          .mamba_heads = 128,
          .mamba_head_dim = 80}> {
  static constexpr std::string_view kName = "nemotron-nano-12b-v2";
};

struct Nemotron3Nano_4b
    : NemotronH<NemotronHShape{.model_dim = 3136,
                               .layers = "M-M-M-MM-M-M*-M-M*-M-M-M*-M-M-MM*-MMM-M-M-",
                               .heads = 40,
                               .hidden = 12'544,
                               .mamba_heads = 96,
                               .mamba_head_dim = 80}> {
  static constexpr std::string_view kName = "nemotron-3-nano-4b";
  static constexpr ChatTemplate kChatTemplate = ChatTemplate::kChatMl;
};

struct Nemotron3Nano_30b_a3b
    : NemotronH<NemotronHShape{.model_dim = 2688,
                               .layers = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
                               .heads = 32,
                               .kv_heads = 2,
                               .hidden = 1856,
                               .mamba_heads = 64,
                               .mamba_head_dim = 64,
                               .experts = 128,
                               .used_experts = 6,
                               .shared_hidden = 3712}> {
  static constexpr std::string_view kName = "nemotron-3-nano-30b-a3b";
  static constexpr ChatTemplate kChatTemplate = ChatTemplate::kChatMl;
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_NEMOTRON_H_H_
