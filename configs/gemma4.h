// Gemma 4, text: sliding layers with a few full ones between them, whose heads are longer, and
// norms of queries, keys and values.
#ifndef INLAY_CONFIGS_GEMMA4_H_
#define INLAY_CONFIGS_GEMMA4_H_

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include "configs/config.h"
#include "configs/metadata.h"

namespace inlay {

// What differs between the members of the family.
struct Gemma4Shape {
  int vocab_size = 262'144;
  int model_dim = 0;
  int layers = 0;
  LayerMask full_layers{};  // the others are sliding
  int heads = 0;
  int kv_heads = 0;             // of sliding layers
  int full_kv_heads = 0;        // of full layers
  int head_dim = 256;           // of sliding layers
  int full_head_dim = 512;      // of full layers
  bool values_are_keys = true;  // in full layers
  int hidden = 0;               // of the MLP
  int window = 0;
  // The last layers that have no keys and values of their own, and the MLP's hidden size there.
  int sharing_layers = 0;
  int sharing_hidden = 0;  // 0: as in other layers
  int layer_input = 0;     // of per-layer embeddings, for each layer; 0: none
  int experts = 0;         // beside the MLP of every layer; 0: none
  int used_experts = 0;
  int expert_hidden = 0;
};

struct Gemma4Norms : PreAndPostNorm {
  static constexpr bool kScalesStream = true;
};

template <Gemma4Shape kShape>
struct Gemma4 : ConfigDefaults {
  static constexpr std::string_view kArchitecture = "gemma4";
  static constexpr int kVocabSize = kShape.vocab_size;
  static constexpr int kModelDim = kShape.model_dim;
  static constexpr float kNormEpsilon = 1e-6f;
  static constexpr float kEmbeddingScale = static_cast<float>(ConstexprSqrt(kShape.model_dim));
  static constexpr float kLogitSoftCap = 30.0f;
  static constexpr ChatTemplate kChatTemplate = ChatTemplate::kGemma4;
  static constexpr SamplingDefaults kSampling{.temperature = 1.0f, .top_k = 64, .top_p = 0.95f};

  // Query-key products are not divided.
  static constexpr AttentionShape kSlidingHeads{.heads = kShape.heads,
                                                .kv_heads = kShape.kv_heads,
                                                .head_dim = kShape.head_dim,
                                                .qk_norm = true,
                                                .query_scalar = 1,
                                                .v_norm = true};
  static constexpr AttentionShape kFullHeads{.heads = kShape.heads,
                                             .kv_heads = kShape.full_kv_heads,
                                             .head_dim = kShape.full_head_dim,
                                             .qk_norm = true,
                                             .query_scalar = 1,
                                             .v_norm = true,
                                             .values_are_keys = kShape.values_are_keys};
  static constexpr AttentionKeys kAttentionKeys{.stores_scale = false, .own_sliding_dims = true};
  static constexpr Rope kSlidingRope{.base = 10'000};
  static constexpr Rope kFullRope{
      .base = 1'000'000, .dims = kShape.full_head_dim / 4, .proportional = true};

  static constexpr MoeShape kExperts{.experts = kShape.experts,
                                     .used_experts = kShape.used_experts,
                                     .hidden = kShape.expert_hidden};
  template <int kHidden>
  using Mlp = std::conditional_t<kShape.experts == 0, GatedMlp<kHidden, Activation::kGeluTanh>,
                                 MoeBesideMlp<kExperts, kHidden, Activation::kGeluTanh>>;
  using Input = std::conditional_t<kShape.layer_input == 0, NoInput,
                                   GatedInput<kShape.layer_input, Activation::kGeluTanh>>;
  using Sliding = SlidingWindowAttention<kSlidingHeads, kSlidingRope, kShape.window>;
  using Full = FullAttention<kFullHeads, kFullRope>;
  template <class Mixer>
  using Own = Layer<Gemma4Norms, Mixers<Mixer>, Mlp<kShape.hidden>, Input>;
  static constexpr int kSharingHidden =
      kShape.sharing_hidden == 0 ? kShape.hidden : kShape.sharing_hidden;
  template <class Mixer>
  using Sharing = Layer<Gemma4Norms, Mixers<SharedKvAttention<Mixer>>, Mlp<kSharingHidden>, Input>;
  static constexpr int kOwnLayers = kShape.layers - kShape.sharing_layers;
  using Layers = Chain<Masked<kOwnLayers, kShape.full_layers, Own<Full>, Own<Sliding>>,
                       Masked<kShape.sharing_layers, (kShape.full_layers >> kOwnLayers),
                              Sharing<Full>, Sharing<Sliding>>>;

  template <class Config, class Visitor>
  static void Metadata(Visitor& v) {
    CommonMetadata<Config>(v);
    v.Flags("attention.sliding_window_pattern", SlidingLayers());
    v.Int("attention.shared_kv_layers", kShape.sharing_layers, 0);
    if constexpr (kShape.layer_input == 0) v.Int("embedding_length_per_layer_input", 0, 0);
    if constexpr (kShape.experts == 0) {
      v.Int("expert_count", 0, 0);
      v.Int("expert_used_count", 0, 0);
    } else {
      v.Int("expert_feed_forward_length", kShape.expert_hidden);
    }
    v.Float("final_logit_softcapping", Config::kLogitSoftCap);
  }

 private:
  // Of each layer.
  static constexpr std::array<bool, size_t{kShape.layers}> SlidingLayers() {
    std::array<bool, size_t{kShape.layers}> sliding{};
    for (size_t i = 0; i < sliding.size(); ++i) sliding[i] = !kShape.full_layers.Has(i);
    return sliding;
  }
};

// The numbers are those of text_config in the config.json of huggingface.co/google/gemma-4-12B-it
// and its siblings.
struct Gemma4_E2b : Gemma4<Gemma4Shape{.model_dim = 1536,
                                       .layers = 35,
                                       .full_layers = EveryLayerAt(5),
                                       .heads = 8,
                                       .kv_heads = 1,
                                       .full_kv_heads = 1,
                                       .values_are_keys = false,
                                       .hidden = 6144,
                                       .window = 512,
                                       .sharing_layers = 20,
                                       .sharing_hidden = 12'288,
                                       .layer_input = 256}> {
  static constexpr std::string_view kName = "gemma-4-e2b";
};

struct Gemma4_E4b : Gemma4<Gemma4Shape{.model_dim = 2560,
                                       .layers = 42,
                                       .full_layers = EveryLayerAt(6),
                                       .heads = 8,
                                       .kv_heads = 2,
                                       .full_kv_heads = 2,
                                       .values_are_keys = false,
                                       .hidden = 10'240,
                                       .window = 512,
                                       .sharing_layers = 18,
                                       .layer_input = 256}> {
  static constexpr std::string_view kName = "gemma-4-e4b";
};

struct Gemma4_12b : Gemma4<Gemma4Shape{.model_dim = 3840,
                                       .layers = 48,
                                       .full_layers = EveryLayerAt(6),
                                       .heads = 16,
                                       .kv_heads = 8,
                                       .full_kv_heads = 1,
                                       .hidden = 15'360,
                                       .window = 1024}> {
  static constexpr std::string_view kName = "gemma-4-12b";
};

struct Gemma4_31b : Gemma4<Gemma4Shape{.model_dim = 5376,
                                       .layers = 60,
                                       .full_layers = EveryLayerAt(6),
                                       .heads = 32,
                                       .kv_heads = 16,
                                       .full_kv_heads = 4,
                                       .hidden = 21'504,
                                       .window = 1024}> {
  static constexpr std::string_view kName = "gemma-4-31b";
};

struct Gemma4_26b_a4b : Gemma4<Gemma4Shape{.model_dim = 2816,
                                           .layers = 30,
                                           .full_layers = EveryLayerAt(6),
                                           .heads = 16,
                                           .kv_heads = 8,
                                           .full_kv_heads = 2,
                                           .hidden = 2112,
                                           .window = 1024,
                                           .experts = 128,
                                           .used_experts = 8,
                                           .expert_hidden = 704}> {
  static constexpr std::string_view kName = "gemma-4-26b-a4b";
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_GEMMA4_H_
