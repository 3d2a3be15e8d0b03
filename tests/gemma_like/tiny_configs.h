// Configs small enough for hundreds of thousands of steps, with every layer kind and short windows
// and periods.
#ifndef INLAY_TESTS_GEMMA_LIKE_TINY_CONFIGS_H_
#define INLAY_TESTS_GEMMA_LIKE_TINY_CONFIGS_H_

#include <string_view>

#include "configs/config.h"
#include "configs/layers.h"
#include "configs/metadata.h"
#include "configs/pattern.h"
#include "tests/gemma_like/leaky_average.h"

namespace inlay {

struct TinyBase : ConfigDefaults {
  static constexpr std::string_view kArchitecture = "tiny";
  static constexpr int kVocabSize = 48;
  static constexpr int kModelDim = 32;
  static constexpr float kNormEpsilon = 1e-6f;
  static constexpr float kEmbeddingScale = 5.0f;

  static constexpr AttentionShape kHeads{
      .heads = 4, .kv_heads = 2, .head_dim = 16, .qk_norm = true};
  using Mlp = GatedMlp<48, Activation::kGeluTanh>;
  template <int kWindow>
  using Window = SlidingWindowAttention<kHeads, Rope{.base = 10'000}, kWindow>;
  using All = FullAttention<kHeads, Rope{.base = 1'000'000}>;

  template <class Config>
  static void Metadata(auto& v) {
    CommonMetadata<Config>(v);
  }
};

// As Bard: Mamba2, sliding and full attention.
struct TinyBard : TinyBase {
  static constexpr std::string_view kName = "tiny-bard";
  using Ssm = Layer<PreNorm,
                    Mixers<Mamba2<Mamba2Shape{
                        .heads = 4, .head_dim = 8, .state_dim = 16, .groups = 1, .conv_width = 4}>>,
                    Mlp>;
  using Sliding = Layer<PreNorm, Mixers<Window<20>>, Mlp>;
  using Full = Layer<PreNorm, Mixers<All>, Mlp>;
  using Layers = Chain<Ssm, Sliding, Ssm, Full>;
};

// As Gemma 2 and 3: attention only, norms on both sides, soft caps, and a window longer than two
// blocks.
struct TinyGemma : TinyBase {
  static constexpr std::string_view kName = "tiny-gemma";
  static constexpr float kLogitSoftCap = 30.0f;
  static constexpr AttentionShape kCapped{
      .heads = 4, .kv_heads = 2, .head_dim = 16, .qk_norm = true, .soft_cap = 50};
  template <int kWindow>
  using Sliding =
      Layer<PreAndPostNorm, Mixers<SlidingWindowAttention<kCapped, Rope{.base = 10'000}, kWindow>>,
            Mlp>;
  using Full = Layer<PreAndPostNorm, Mixers<FullAttention<kCapped, Rope{.base = 1'000'000}>>, Mlp>;
  using Layers = Chain<Sliding<20>, Sliding<150>, Full>;
  // No file could tell the two windows, and none has to: these files have random weights.
  template <class Config>
  static void Metadata(auto&) {}
};

// As Granite 4 hybrid: no rotation, all multipliers, a mixture of experts with a shared one.
struct TinyGranite : TinyBase {
  static constexpr std::string_view kName = "tiny-granite";
  static constexpr float kLogitDivisor = 3.0f;
  static constexpr Ratio kResidual{.num = 22, .den = 100};
  using Moe = MoeMlp<MoeShape{.experts = 5, .used_experts = 2, .hidden = 16, .shared_hidden = 24},
                     Activation::kSilu>;
  using Ssm =
      Mamba2<Mamba2Shape{.heads = 4, .head_dim = 8, .state_dim = 16, .groups = 1, .conv_width = 4}>;
  using Attending =
      FullAttention<AttentionShape{.heads = 4, .kv_heads = 1, .head_dim = 8, .query_scalar = 16},
                    Rope{}>;
  using Recurrent = Layer<PreNorm, Mixers<Scaled<Ssm, kResidual>>, Scaled<Moe, kResidual>>;
  using Last = Layer<PreNorm, Mixers<Scaled<Attending, kResidual>>,
                     Scaled<GatedMlp<40, Activation::kSilu>, kResidual>>;
  using Layers = Chain<Recurrent, Recurrent, Last>;
};

// As Mamba2: nothing else, and two groups.
struct TinyMamba : TinyBase {
  static constexpr std::string_view kName = "tiny-mamba";
  static constexpr bool kTiedOutput = false;
  using Layers = Repeat<
      3, Layer<PreNorm,
               Mixers<Mamba2<Mamba2Shape{
                   .heads = 4, .head_dim = 16, .state_dim = 8, .groups = 2, .conv_width = 3}>>>>;
};

// As LFM2: short convolutions and full attention; from the third layer on experts by a biased
// router.
struct TinyLfm2 : TinyBase {
  static constexpr std::string_view kName = "tiny-lfm2";
  using Moe = MoeMlp<
      MoeShape{.experts = 5, .used_experts = 2, .hidden = 16, .routing = Routing::kBiasedLogistic},
      Activation::kSilu>;
  using Conv = ShortConv<ShortConvShape{.channels = kModelDim, .width = 3}>;
  using Convolving = Layer<PreNorm, Mixers<Conv>, Mlp>;
  using Full = Layer<PreNorm, Mixers<All>, Moe>;
  using Layers = Chain<Convolving, Convolving, Full, Layer<PreNorm, Mixers<Conv>, Moe>>;
};

// As Qwen3.5: delta nets, gated attention that rotates a part of each head, experts and a shared
// one with a gate.
struct TinyQwen : TinyBase {
  static constexpr std::string_view kName = "tiny-qwen";
  using Moe = MoeMlp<
      MoeShape{
          .experts = 5, .used_experts = 2, .hidden = 16, .shared_hidden = 24, .shared_gate = true},
      Activation::kSilu>;
  using Delta = DeltaNet<DeltaNetShape{.key_heads = 2, .value_heads = 4, .head_dim = 8}>;
  using Gated =
      FullAttention<AttentionShape{
                        .heads = 4, .kv_heads = 2, .head_dim = 16, .qk_norm = true, .gated = true},
                    Rope{.base = 10'000, .dims = 4}>;
  using Recurrent = Layer<PreNorm, Mixers<Delta>, Moe>;
  using Layers = Chain<Recurrent, Layer<PreNorm, Mixers<Gated>, Mlp>, Recurrent>;
};

// As Gemma 4: full layers with longer heads, of which the first angles alone turn, and without a
// matrix for values; norms of values, norms on both sides, and a scale of the stream.
struct TinyGemma4 : TinyBase {
  static constexpr std::string_view kName = "tiny-gemma4";
  static constexpr float kLogitSoftCap = 30.0f;
  struct Norms : PreAndPostNorm {
    static constexpr bool kScalesStream = true;
  };
  static constexpr AttentionShape kSlidingHeads{.heads = 4,
                                                .kv_heads = 2,
                                                .head_dim = 16,
                                                .qk_norm = true,
                                                .query_scalar = 1,
                                                .v_norm = true};
  static constexpr AttentionShape kFullHeads{.heads = 4,
                                             .kv_heads = 1,
                                             .head_dim = 32,
                                             .qk_norm = true,
                                             .query_scalar = 1,
                                             .v_norm = true,
                                             .values_are_keys = true};
  static constexpr AttentionKeys kAttentionKeys{.own_sliding_dims = true};
  static constexpr Rope kFullRope{.base = 1'000'000, .dims = 8, .proportional = true};
  using Sliding =
      Layer<Norms, Mixers<SlidingWindowAttention<kSlidingHeads, Rope{.base = 10'000}, 20>>, Mlp>;
  using Full = Layer<Norms, Mixers<FullAttention<kFullHeads, kFullRope>>, Mlp>;
  using Layers = Chain<Sliding, Full, Sliding, Full>;
};

// As Gemma 4 E2B: every layer has an input of its own, and the last ones read the rows of earlier
// ones, a sliding one first and last.
struct TinyGemma4E : TinyBase {
  static constexpr std::string_view kName = "tiny-gemma4e";
  using Norms = TinyGemma4::Norms;
  using Input = GatedInput<8, Activation::kGeluTanh>;
  using Sliding = SlidingWindowAttention<TinyGemma4::kSlidingHeads, Rope{.base = 10'000}, 20>;
  using Full = FullAttention<TinyGemma4::kFullHeads, TinyGemma4::kFullRope>;
  static constexpr AttentionKeys kAttentionKeys = TinyGemma4::kAttentionKeys;
  template <class Mixer>
  using Own = Layer<Norms, Mixers<Mixer>, Mlp, Input>;
  template <class Mixer>
  using Sharing =
      Layer<Norms, Mixers<SharedKvAttention<Mixer>>, GatedMlp<64, Activation::kGeluTanh>, Input>;
  using Layers = Chain<Own<Sliding>, Own<Full>, Own<Sliding>, Sharing<Sliding>, Sharing<Full>,
                       Sharing<Sliding>>;
};

// As Gemma 4 26B-A4B: experts beside the MLP.
struct TinyGemma4Moe : TinyBase {
  static constexpr std::string_view kName = "tiny-gemma4moe";
  static constexpr AttentionKeys kAttentionKeys = TinyGemma4::kAttentionKeys;
  using Moe = MoeBesideMlp<MoeShape{.experts = 5, .used_experts = 2, .hidden = 16}, 24,
                           Activation::kGeluTanh>;
  template <class Mixer>
  using OneLayer = Layer<TinyGemma4::Norms, Mixers<Mixer>, Moe>;
  using Layers = Chain<OneLayer<TinyGemma4E::Sliding>, OneLayer<TinyGemma4E::Full>,
                       OneLayer<TinyGemma4E::Sliding>>;
};

// Two mixers in parallel (as Falcon-H1) with a multiplier each, Mamba2 without a norm, layers
// without a mixer (as Nemotron-H), of an MLP or of groups of experts that work in a dimension of
// their own, also after the last one with cache storage. Its full attention rotates neighbouring
// elements, as Granite's.
struct TinyParallel : TinyBase {
  static constexpr std::string_view kName = "tiny-parallel";
  using Ssm =
      Mamba2<Mamba2Shape{.heads = 4, .head_dim = 8, .state_dim = 16, .groups = 2, .normed = false}>;
  using Rotated = FullAttention<kHeads, Rope{.base = 1'000'000, .interleaved = true}>;
  using Parallel =
      Layer<PreNorm, Mixers<Scaled<Ssm, Ratio{1, 2}>, Scaled<Rotated, Ratio{3, 4}>>, Mlp>;
  using MlpOnly = Layer<PreNorm, Mixers<>, Scaled<SquaredReluMlp<40>, Ratio{1, 3}>>;
  using Moe = MoeMlp<MoeShape{.experts = 6,
                              .used_experts = 2,
                              .hidden = 16,
                              .shared_hidden = 24,
                              .routing = Routing::kBiasedLogistic,
                              .groups = 3,
                              .used_groups = 2,
                              .scale = {.num = 3, .den = 2},
                              .latent = 24},
                     Activation::kSquaredRelu>;
  using MoeOnly = Layer<PreNorm, Mixers<>, Scaled<Moe, Ratio{1, 3}>>;
  using Sliding = Layer<PreNorm, Mixers<Window<20>>>;
  using Layers = Chain<Parallel, MoeOnly, Sliding, MlpOnly, MoeOnly>;
};

// As EmbeddingGemma: attention to both sides, of texts that are longer than any other append.
struct TinyEmbedding : TinyBase {
  static constexpr std::string_view kName = "tiny-embedding";
  static constexpr TextEmbedding kEmbedding{.pooling = Pooling::kMean, .max_tokens = 2500};
  static constexpr AttentionShape kBothSides{
      .heads = 4, .kv_heads = 2, .head_dim = 16, .bidirectional = true};
  template <class Attention>
  using OneLayer = Layer<PreNorm, Mixers<Attention>, Mlp>;
  using Layers = Chain<OneLayer<SlidingWindowAttention<kBothSides, Rope{.base = 10'000}, 20>>,
                       OneLayer<FullAttention<kBothSides, Rope{.base = 1'000'000}>>>;
};

// A kind that is in none of the lists, before and after full attention; the last layer that keeps
// something of the past is then a recurrence.
struct TinyLeaky : TinyBase {
  static constexpr std::string_view kName = "tiny-leaky";
  using Averaging = Layer<PreNorm, Mixers<LeakyAverage<LeakyAverageShape{.channels = 24}>>, Mlp>;
  using Full = Layer<PreNorm, Mixers<All>, Mlp>;
  using Layers = Chain<Averaging, Full, Averaging>;
};

// Layers with enough heads, groups and channels for ranks to share: Mamba2 whose heads are all
// normed together, Mamba2 in groups, delta nets whose value heads read the key heads twice, short
// convolutions, and attention of whose two kv heads each is held by two of four ranks.
struct TinyShared : TinyBase {
  static constexpr std::string_view kName = "tiny-shared";
  static constexpr int kModelDim = 96;
  using OneGroup = Mamba2<Mamba2Shape{
      .heads = 12, .head_dim = 8, .state_dim = 16, .groups = 1, .conv_width = 4}>;
  using Groups = Mamba2<Mamba2Shape{
      .heads = 6, .head_dim = 16, .state_dim = 16, .groups = 3, .conv_width = 3}>;
  using Delta = DeltaNet<DeltaNetShape{.key_heads = 6, .value_heads = 12, .head_dim = 16}>;
  using Conv = ShortConv<ShortConvShape{.channels = kModelDim, .width = 3}>;
  using Queries = FullAttention<AttentionShape{.heads = 8, .kv_heads = 2, .head_dim = 32},
                                Rope{.base = 10'000}>;
  template <class Mixer>
  using Mixing = Layer<PreNorm, Mixers<Mixer>, Mlp>;
  using Layers =
      Chain<Mixing<OneGroup>, Mixing<Conv>, Mixing<Queries>, Mixing<Delta>, Mixing<Groups>>;
  // No file could tell the two shapes of Mamba2, and none has to.
  template <class Config>
  static void Metadata(auto&) {}
};

}  // namespace inlay

#endif  // INLAY_TESTS_GEMMA_LIKE_TINY_CONFIGS_H_
