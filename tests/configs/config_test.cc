// The families: that their members have the sizes and layers of the checkpoints.
#include "configs/config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "configs/bard.h"
#include "configs/falcon_h1.h"
#include "configs/gemma2.h"
#include "configs/gemma3.h"
#include "configs/gemma4.h"
#include "configs/gemma_embedding.h"
#include "configs/granite.h"
#include "configs/granite4h.h"
#include "configs/lfm2.h"
#include "configs/mamba2.h"
#include "configs/metadata.h"
#include "configs/nemotron_h.h"
#include "configs/qwen35.h"
#include "tests/configs/part_list.h"

namespace inlay {
namespace {

// The weights of each kind of part.
template <int kHidden, Activation kActivation>
int64_t PartParameters(int64_t dim, GatedMlp<kHidden, kActivation>) {
  return 3 * dim * kHidden;
}

template <MoeShape kShape, Activation kActivation>
int64_t PartParameters(int64_t dim, MoeMlp<kShape, kActivation>) {
  const int64_t bias = kShape.routing == Routing::kBiasedLogistic ? kShape.experts : 0;
  const int64_t matrices = kActivation == Activation::kSquaredRelu ? 2 : 3;
  const int64_t width = kShape.latent == 0 ? dim : kShape.latent;
  return dim * kShape.experts + bias + matrices * width * kShape.hidden * kShape.experts +
         matrices * dim * kShape.shared_hidden + (kShape.shared_gate ? dim : 0) +
         2 * dim * kShape.latent;
}

template <AttentionShape kShape, Rope kRope, int kWindow>
int64_t PartParameters(int64_t dim, AttentionMixer<kShape, kRope, kWindow>) {
  const int64_t of_heads =
      (kShape.gated ? 3 : 2) * kShape.heads + (kShape.values_are_keys ? 1 : 2) * kShape.kv_heads;
  const int64_t projections = of_heads * kShape.head_dim * dim;
  return projections + (kShape.qk_norm ? 2 * kShape.head_dim : 0);
}

template <AttentionShape kShape, Rope kRope, int kWindow>
int64_t PartParameters(int64_t dim, SharedKvAttention<AttentionMixer<kShape, kRope, kWindow>>) {
  return 2 * kShape.heads * kShape.head_dim * dim + kShape.head_dim;
}

template <int kDim, Activation kActivation>
int64_t PartParameters(int64_t dim, GatedInput<kDim, kActivation>) {
  return 2 * dim * kDim;
}

template <MoeShape kShape, int kHidden, Activation kActivation>
int64_t PartParameters(int64_t dim, MoeBesideMlp<kShape, kHidden, kActivation>) {
  return PartParameters(dim, MoeMlp<kShape, kActivation>()) + 3 * dim * kHidden  // and the MLP,
         + 4 * dim + kShape.experts;  // norms and what experts' outputs are multiplied by
}

template <Mamba2Shape kShape>
int64_t PartParameters(int64_t dim, Mamba2<kShape>) {
  const int64_t inner = kShape.heads * kShape.head_dim;
  const int64_t conv = inner + 2 * kShape.groups * kShape.state_dim;
  return (inner + conv + kShape.heads) * dim  // in
         + conv * kShape.conv_width + conv    // convolution and its bias
         + 3 * kShape.heads                   // dt bias, a, d
         + (kShape.normed ? inner : 0)        // norm
         + inner * dim;                       // out
}

template <ShortConvShape kShape>
int64_t PartParameters(int64_t dim, ShortConv<kShape>) {
  return 4 * dim * kShape.channels + kShape.width * kShape.channels;
}

template <int kHidden>
int64_t PartParameters(int64_t dim, SquaredReluMlp<kHidden>) {
  return 2 * dim * kHidden;
}

template <DeltaNetShape kShape>
int64_t PartParameters(int64_t dim, DeltaNet<kShape>) {
  const int64_t inner = kShape.value_heads * kShape.head_dim;
  const int64_t qkv = inner + 2 * kShape.key_heads * kShape.head_dim;
  return (qkv + inner + 2 * kShape.value_heads) * dim  // qkv, gate, alpha, beta
         + qkv * kShape.conv_width                     // convolution
         + 2 * kShape.value_heads + kShape.head_dim    // dt bias, a; norm
         + inner * dim;                                // out
}

// All weights of a model; a tied output counts once, as does the embedding of a model without one.
template <class C>
int64_t Parameters() {
  const int64_t dim = C::kModelDim;
  int64_t sum = (C::kTiedOutput ? 1 : 2) * C::kVocabSize * dim + dim;
  sum += 2 * dim * C::kEmbedding.dense_dim;
  // The table of the layers' inputs, the projection of the embedding to them, and its norm.
  const int64_t inputs = int64_t{kLayerInputDim<C>} * C::Layers::kSize;
  sum += (C::kVocabSize + dim) * inputs + int64_t{kLayerInputDim<C>};
  ForEachLayer<C>([&]<class L>(int) {
    const int64_t branches = (L::Mixers::kSize > 0 ? 1 : 0) + (L::kHasMlp ? 1 : 0);
    sum += branches * (L::Norms::kPost ? 2 : 1) * dim + (L::Norms::kScalesStream ? 1 : 0);
    sum += L::kHasInput && L::Norms::kPost ? dim : 0;
    ForEachPart<L>([&]<class P>() {
      static_assert(part_list::HasName(P::kName), "a kind is not in tests/configs/part_list.h");
      sum += PartParameters(dim, P());
    });
  });
  return sum;
}

// The counts of the demo models are those of models/README.md and its siblings, the others those
// that the hub shows for the checkpoint (the language model's part of it, tied weights once).
TEST(ConfigTest, ExactNumbersOfWeights) {
  EXPECT_EQ(Parameters<Bard>(), 6'720'960);
  EXPECT_EQ(Parameters<BardGemma3>(), 2'856'384);
  EXPECT_EQ(Parameters<BardGraniteH>(), 3'169'360);
  EXPECT_EQ(Parameters<Gemma2_2b>(), 2'614'341'888);
  EXPECT_EQ(Parameters<Gemma2_9b>(), 9'241'705'984);
  EXPECT_EQ(Parameters<Gemma3_270m>(), 268'098'176);
  EXPECT_EQ(Parameters<Gemma3_1b>(), 999'885'952);
  // Published with 64 rows of padding.
  EXPECT_EQ(Parameters<Gemma3_4b>() + 64 * 2560, 3'880'263'168);
  EXPECT_EQ(Parameters<Mamba2_130m>(), 128'989'632);
}

// The others' are known as the hub rounds them.
TEST(ConfigTest, RoundedNumbersOfWeights) {
  const auto expect_millions = [](int64_t parameters, double millions) {
    EXPECT_NEAR(static_cast<double>(parameters) / (millions * 1e6), 1, 0.005) << millions;
  };
  // The embedding and the rest, from the tables of the Gemma 2 and the Gemma 3 report.
  expect_millions(Parameters<Gemma2_27b>(), 1'180 + 26'047);
  expect_millions(Parameters<Gemma3_12b>(), 11'800);
  expect_millions(Parameters<Gemma3_27b>(), 1'416 + 25'600);
  // As llama.cpp counts those of the files, which have matrices for keys and values also in layers
  // that read those of earlier ones: 16 sliding layers and 4 full ones of E2B, 15 and 3 of E4B.
  expect_millions(Parameters<Gemma4_E2b>() + 2 * (16 * 256 + 4 * 512) * 1536, 4'650);
  expect_millions(Parameters<Gemma4_E4b>() + 2 * (15 * 512 + 3 * 1024) * 2560, 7'520);
  expect_millions(Parameters<EmbeddingGemma_300m>(), 308);
  expect_millions(Parameters<Granite_350m>(), 352);
  expect_millions(Parameters<Granite_1b>(), 1'630);
  expect_millions(Parameters<Granite_Micro>(), 3'400);
  expect_millions(Parameters<Granite_4_2_3b>(), 3'660);
  expect_millions(Parameters<Granite4h_350m>(), 340);
  expect_millions(Parameters<Granite4h_1b>(), 1'460);
  expect_millions(Parameters<Granite4h_Micro>(), 3'190);
  expect_millions(Parameters<Granite4h_Tiny>(), 6'940);
  expect_millions(Parameters<Granite4h_Small>(), 32'200);
  expect_millions(Parameters<Lfm2_230m>(), 229.69);
  expect_millions(Parameters<Lfm2_350m>(), 354.48);
  expect_millions(Parameters<Lfm2_700m>(), 742.49);
  expect_millions(Parameters<Lfm2_1_2b>(), 1170.34);
  expect_millions(Parameters<Lfm2_2_6b>(), 2569.27);
  expect_millions(Parameters<Lfm2_8b_a1b>(), 8'340);
  expect_millions(Parameters<Mamba2_370m>(), 370);
  expect_millions(Parameters<Mamba2_780m>(), 780);
  expect_millions(Parameters<Mamba2_1_3b>(), 1'340);
  expect_millions(Parameters<Mamba2_2_7b>(), 2'700);
  expect_millions(Parameters<MambaCodestral7b>(), 7'280);
}

// The published ones, which leave out norms.
TEST(ConfigTest, NumbersOfWeightsOfFalconH1AndNemotronH) {
  const auto expect_millions = [](int64_t parameters, double millions) {
    EXPECT_NEAR(static_cast<double>(parameters) / (millions * 1e6), 1, 0.002) << millions;
  };
  expect_millions(Parameters<FalconH1_0_5b>(), 521);
  expect_millions(Parameters<FalconH1_1_5b>(), 1554);
  expect_millions(Parameters<FalconH1_1_5bDeep>(), 1554);
  expect_millions(Parameters<FalconH1_3b>(), 3148);
  expect_millions(Parameters<FalconH1_7b>(), 7584);
  expect_millions(Parameters<FalconH1_34b>(), 33'640);
  expect_millions(Parameters<NemotronH_4b>(), 4490);
  expect_millions(Parameters<NemotronH_8b>(), 8100);
  expect_millions(Parameters<NemotronNano2_9b>(), 8890);
  expect_millions(Parameters<NemotronNano2_12b>(), 12'310);
  expect_millions(Parameters<Nemotron3Nano_4b>(), 3970);
  expect_millions(Parameters<Nemotron3Nano_30b_a3b>(), 31'580);
}

// Of these no more is known than their names say.
TEST(ConfigTest, NumbersOfWeightsAreThoseOfTheNames) {
  const auto expect_billions = [](int64_t parameters, double billions) {
    EXPECT_NEAR(static_cast<double>(parameters) / 1e9, billions, 0.07 * billions);
  };
  expect_billions(Parameters<Qwen35_0_8b>(), 0.8);
  expect_billions(Parameters<Qwen35_2b>(), 2);
  expect_billions(Parameters<Qwen35_4b>(), 4);
  expect_billions(Parameters<Qwen35_9b>(), 9);
  expect_billions(Parameters<Qwen35_27b>(), 27);
  expect_billions(Parameters<Qwen35_35b_a3b>(), 35);
  expect_billions(Parameters<Gemma4_12b>(), 12);
  expect_billions(Parameters<Gemma4_31b>(), 31);
  expect_billions(Parameters<Gemma4_26b_a4b>(), 26);
}

// The first letter of each layer's mixer: 'm' for Mamba2, 's' for a sliding window, 'a' for full
// attention, 'c' for a short convolution, 'd' for a delta net.
template <class C>
std::string Spell() {
  std::string text;
  for (std::string_view name : MixerNames<C>()) text += name.front();
  return text;
}

TEST(ConfigTest, OrderOfLayers) {
  EXPECT_EQ(Spell<Bard>(), "msmamsma");
  EXPECT_EQ(Spell<BardGemma3>(), "ssassa");
  EXPECT_EQ(Spell<Gemma2_2b>(), "sasasasasasasasasasasasasa");
  EXPECT_EQ(Spell<Gemma3_270m>(), "sssssasssssasssssa");
  EXPECT_EQ(Spell<Gemma3_1b>(), "sssssasssssasssssasssssass");
  EXPECT_EQ(Spell<Gemma3_4b>(), "sssssasssssasssssasssssasssssassss");
  EXPECT_EQ(Spell<Gemma2_27b>(), "sasasasasasasasasasasasasasasasasasasasasasasa");
  EXPECT_EQ(Spell<Gemma3_27b>(), "sssssasssssasssssasssssasssssasssssasssssasssssasssssasssssass");
  EXPECT_EQ(Spell<Gemma4_E2b>(), "ssssassssassssassssassssassssassssa");
  EXPECT_EQ(Spell<Gemma4_E4b>(), "sssssasssssasssssasssssasssssasssssasssssa");
  EXPECT_EQ(Spell<Gemma4_12b>(), "sssssasssssasssssasssssasssssasssssasssssasssssa");
  EXPECT_EQ(Spell<EmbeddingGemma_300m>(), "sssssasssssasssssasssssa");
  EXPECT_EQ(Spell<Granite_350m>(), std::string(28, 'a'));
  EXPECT_EQ(Spell<Granite4h_350m>(), "mmmmmmmmmmammammmammmmmmmmmammmm");
  EXPECT_EQ(Spell<Granite4h_1b>(), "mmmmmammmmmmmmmammmmmmmmmammmmmmmmmammmm");
  EXPECT_EQ(Spell<Granite4h_Micro>(), Spell<Granite4h_1b>());
  EXPECT_EQ(Spell<Granite4h_Tiny>(), Spell<Granite4h_1b>());
  EXPECT_EQ(Spell<Granite4h_Small>(), Spell<Granite4h_1b>());
  EXPECT_EQ(Spell<Lfm2_350m>(), "ccaccaccacacacac");
  EXPECT_EQ(Spell<Lfm2_230m>(), "ccacacacacacac");
  EXPECT_EQ(Spell<Lfm2_8b_a1b>(), "ccacccacccacccacccaccacc");
  EXPECT_EQ(Spell<Qwen35_0_8b>(), "dddadddadddadddadddaddda");
  EXPECT_EQ(Spell<Mamba2_130m>(), std::string(24, 'm'));
  EXPECT_EQ(Spell<MambaCodestral7b>(), std::string(64, 'm'));
}

// The only part of each layer, as config.json spells it: 'M' for Mamba2, '*' for attention, '-' for
// an MLP, 'E' for experts.
template <class C>
std::string SpellParts() {
  std::string text;
  ForEachLayer<C>([&]<class L>(int) {
    ForEachPart<L>([&]<class P>() {
      text += P::kName == "mamba2"             ? 'M'
              : P::kName == "attention"        ? '*'
              : P::kName == "squared relu mlp" ? '-'
              : P::kName == "moe"              ? 'E'
                                               : '?';
    });
  });
  return text;
}

TEST(ConfigTest, OrderOfPartsOfNemotronH) {
  EXPECT_EQ(SpellParts<NemotronH_4b>(), "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-");
  EXPECT_EQ(SpellParts<NemotronH_8b>(), SpellParts<NemotronH_4b>());
  EXPECT_EQ(SpellParts<NemotronNano2_9b>(),
            "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-");
  EXPECT_EQ(SpellParts<NemotronNano2_12b>(),
            "M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M-");
  EXPECT_EQ(SpellParts<Nemotron3Nano_4b>(), "M-M-M-MM-M-M*-M-M*-M-M-M*-M-M-MM*-MMM-M-M-");
  EXPECT_EQ(SpellParts<Nemotron3Nano_30b_a3b>(),
            "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME");
}

TEST(ConfigTest, Multipliers) {
  EXPECT_EQ(Gemma2_2b::kEmbeddingScale, 48.0f);
  EXPECT_EQ(static_cast<float>(Gemma2_2b::kHeads.Scale()), 0.0625f);
  EXPECT_FLOAT_EQ(Gemma3_270m::kEmbeddingScale, 25.298221f);
  EXPECT_DOUBLE_EQ(Gemma2_27b::kHeads.Scale(), 1 / std::sqrt(144.0));
  EXPECT_DOUBLE_EQ(Gemma3_27b::kHeads.Scale(), 1 / std::sqrt(168.0));
  EXPECT_EQ(Gemma4_31b::kSlidingHeads.Scale(), 1);
  EXPECT_EQ(Gemma4_31b::kFullHeads.Scale(), 1);
  EXPECT_EQ(BranchMultiplier<Granite_350m>(), 0.263f);
  EXPECT_EQ(static_cast<float>(Granite_350m::kHeads.Scale()), 0.015625f);
  EXPECT_EQ(static_cast<float>(Granite_1b::kHeads.Scale()), 0.0078125f);
  EXPECT_EQ(BranchMultiplier<Granite_4_2_3b>(), 1.0f);
  EXPECT_EQ(static_cast<float>(Granite_4_2_3b::kHeads.Scale()), 0.015625f);
  EXPECT_EQ(BranchMultiplier<Granite4h_350m>(), 0.246f);
  EXPECT_EQ(BranchMultiplier<Granite4h_1b>(), 0.22f);
  EXPECT_EQ(static_cast<float>(Granite4h_1b::kHeads.Scale()), 0.0078125f);
  EXPECT_EQ(BardGraniteH::kLogitDivisor, 2.0f);
}

// Granite's inner size is twice the model dim in every member; the shape does not enforce it.
TEST(ConfigTest, GraniteInnerSizes) {
  const auto inner = []<class C>() { return C::kSsm.heads * C::kSsm.head_dim; };
  EXPECT_EQ(inner.operator()<Granite4h_350m>(), 2 * Granite4h_350m::kModelDim);
  EXPECT_EQ(inner.operator()<Granite4h_1b>(), 2 * Granite4h_1b::kModelDim);
  EXPECT_EQ(inner.operator()<Granite4h_Micro>(), 2 * Granite4h_Micro::kModelDim);
  EXPECT_EQ(inner.operator()<Granite4h_Tiny>(), 2 * Granite4h_Tiny::kModelDim);
  EXPECT_EQ(inner.operator()<Granite4h_Small>(), 2 * Granite4h_Small::kModelDim);
}

TEST(ConfigTest, ConstexprSqrtIsSquareRoot) {
  for (int x : {1, 2, 3, 64, 192, 256, 640, 1152, 2304, 3840}) {
    EXPECT_DOUBLE_EQ(ConstexprSqrt(x) * ConstexprSqrt(x), x);
  }
}

}  // namespace
}  // namespace inlay
