// What a model config must define, its defaults, and compile-time checks that report a mistake in
// one sentence.
#ifndef INLAY_CONFIGS_CONFIG_H_
#define INLAY_CONFIGS_CONFIG_H_

#include <concepts>
#include <optional>
#include <string_view>
#include <type_traits>

#include "configs/layer.h"
#include "configs/layers.h"
#include "configs/math.h"
#include "configs/pattern.h"
#include "configs/text_defaults.h"

namespace inlay {

// How a model makes one vector of a text's hidden states.
enum class Pooling { kNone, kMean };

// What a model that embeds texts does instead of computing logits: it pools the hidden states of
// all tokens after the last norm, multiplies the result by two matrices where its file has them,
// and scales it to length 1.
struct TextEmbedding {
  Pooling pooling = Pooling::kNone;  // kNone: the model computes logits
  int max_tokens = 0;                // of a text, which one forward pass must hold
  int dense_dim = 0;                 // the rows of the first matrix, and the columns of the second
};

// A config is a struct derived from this one that defines
//   kName          its name in the registry and on the command line
//   kArchitecture  the value of general.architecture in its files, and the prefix of their
//                  metadata keys
//   kVocabSize     the number of rows of its embedding; files may have more, or fewer if they list
//                  no more tokens than that
//   kModelDim, kNormEpsilon
//   Layers         a LayerList of Layer<...>, built with Chain, Repeat, Periodic, Spelled or
//                  Masked of configs/pattern.h
//   Metadata<Config>(v)  the metadata keys that its files must agree with, for Config, the struct
//                  itself or one derived from it; see configs/metadata.h
// and redefines those of the members below in which it differs.
struct ConfigDefaults {
  static constexpr float kEmbeddingScale = 1.0f;  // embeddings are multiplied by it
  static constexpr float kLogitDivisor = 1.0f;    // logits are divided by it
  static constexpr float kLogitSoftCap = 0.0f;    // 0: none
  // What kNormEpsilon is in files without its key; none: they are refused.
  static constexpr std::optional<float> kAbsentNormEpsilon = std::nullopt;
  // The tensor of the norm before the output matrix.
  static constexpr std::string_view kOutputNormTensor = "output_norm.weight";
  // Whether the output matrix of published checkpoints is the embedding. What counts is whether a
  // file has its own.
  static constexpr bool kTiedOutput = true;
  static constexpr TextEmbedding kEmbedding{};
  static constexpr ChatTemplate kChatTemplate = ChatTemplate::kNone;
  static constexpr SamplingDefaults kSampling{};
};

namespace config_internal {
struct AnyVisitor;
}

template <class C>
concept ModelConfig = std::derived_from<C, ConfigDefaults> && requires {
  { C::kName } -> std::convertible_to<std::string_view>;
  { C::kArchitecture } -> std::convertible_to<std::string_view>;
  { C::kVocabSize } -> std::convertible_to<int>;
  { C::kModelDim } -> std::convertible_to<int>;
  { C::kNormEpsilon } -> std::convertible_to<float>;
  typename C::Layers;
  &C::template Metadata<C, config_internal::AnyVisitor>;
};

namespace config_internal {

template <class List>
struct CheckLayers;
template <class... Layers>
struct CheckLayers<LayerList<Layers...>> {
  static constexpr bool kValid = (CheckLayer<Layers>() && ... && true);
};

// Whether the output for a token depends on tokens after it.
template <class C>
constexpr bool SeesLaterTokens() {
  bool sees = false;
  ForEachLayerType<C>([&]<class L>(int) {
    ForEachPart<L>([&]<class P>() {
      if constexpr (requires { P::kSeesLaterTokens; }) sees = sees || P::kSeesLaterTokens;
    });
  });
  return sees;
}

}  // namespace config_internal

// Whether the model embeds texts; otherwise it computes logits.
template <class C>
constexpr bool EmbedsTexts() {
  return C::kEmbedding.pooling != Pooling::kNone;
}

// The index of the last layer with mixer M; -1 if there is none.
template <class C, class M>
constexpr int LastLayerWith() {
  int last = -1;
  ForEachLayer<C>([&]<class L>(int index) {
    if (IndexOfMixer<L, M>() < L::Mixers::kSize) last = index;
  });
  return last;
}

// Where a mixer that reads what mixer Owner stores finds it: in the last layer with Owner.
template <class C, class Owner>
struct StorageLayer {
  using Layer = LayerTypeAt<typename C::Layers, static_cast<size_t>(LastLayerWith<C, Owner>())>;
  // It is the last layer of its type, too.
  static constexpr int kOrdinal = kLayerCount<typename C::Layers, Layer> - 1;
  static constexpr size_t kMixer = IndexOfMixer<Layer, Owner>();
};

namespace config_internal {

// Whether every layer that reads what another one stores comes after it.
template <class C>
constexpr bool OwnersComeFirst() {
  bool first = true;
  ForEachLayer<C>([&]<class L>(int index) {
    ForEachMixer<L>([&]<class M>(size_t) {
      if constexpr (requires { typename M::StorageOwner; }) {
        constexpr int kOwner = LastLayerWith<C, typename M::StorageOwner>();
        first = first && 0 <= kOwner && kOwner < index;
      }
    });
  });
  return first;
}

// Whether A and B are the same part, or differ in what fingerprints know of them.
template <class A, class B>
constexpr bool HaveOwnFingerprints() {
  if constexpr (!std::is_same_v<A, B> &&
                std::is_same_v<decltype(A::Numbers()), decltype(B::Numbers())>) {
    return std::string_view(A::kName) != B::kName || A::Numbers() != B::Numbers();
  }
  return true;
}
template <class C>
constexpr bool AllPartsHaveOwnFingerprints() {
  bool own = true;
  ForEachLayerType<C>([&]<class L>(int) {
    ForEachPart<L>([&]<class P>() {
      ForEachLayerType<C>([&]<class Other>(int) {
        ForEachPart<Other>([&]<class Q>() {
          if constexpr (LayerPart<P> && LayerPart<Q>) own = own && HaveOwnFingerprints<P, Q>();
        });
      });
    });
  });
  return own;
}

// The size of the layers' inputs: 0 if no layer has one, -1 if they differ.
template <class C>
constexpr int InputDim() {
  int dim = 0;
  bool any = false, agree = true;
  ForEachLayerType<C>([&]<class L>(int) {
    int of_layer = 0;
    if constexpr (L::kHasInput) of_layer = L::Input::kDim;
    agree = agree && (!any || dim == of_layer);
    dim = of_layer;
    any = true;
  });
  return agree ? dim : -1;
}

}  // namespace config_internal

// The size of each layer's input, which the model computes for every token; 0 without such inputs.
template <class C>
inline constexpr size_t kLayerInputDim = static_cast<size_t>(config_internal::InputDim<C>());

// True for a config whose numbers are consistent; otherwise a static_assert says in one sentence
// what is wrong.
template <class C>
constexpr bool CheckConfig() {
  static_assert(ModelConfig<C>,
                "a config must derive from ConfigDefaults and define kName, kArchitecture, "
                "kVocabSize, kModelDim, kNormEpsilon, Layers and Metadata");
  if constexpr (ModelConfig<C>) {
    static_assert(C::kVocabSize > 0 && C::kModelDim > 0,
                  "kVocabSize and kModelDim must be positive");
    static_assert(C::kNormEpsilon > 0, "kNormEpsilon must be positive");
    static_assert(C::Layers::kSize > 0, "a model must have at least one layer");
    static_assert(C::kLogitDivisor != 0, "kLogitDivisor must not be 0");
    static_assert(!EmbedsTexts<C>() || C::kEmbedding.max_tokens > 0,
                  "a model that embeds texts must have a positive kEmbedding.max_tokens");
    static_assert(EmbedsTexts<C>() || !config_internal::SeesLaterTokens<C>(),
                  "only a model that embeds texts may have bidirectional attention");
    static_assert(config_internal::OwnersComeFirst<C>(),
                  "a layer can only read what an earlier layer stores");
    static_assert(config_internal::InputDim<C>() >= 0,
                  "all layers of a model have inputs of the same size, or none has one");
    static_assert(config_internal::AllPartsHaveOwnFingerprints<C>(),
                  "parts that differ must differ in kName or Numbers(), which fingerprints are of");
    return config_internal::CheckLayers<DistinctLayers<typename C::Layers>>::kValid;
  }
  return true;  // the static_assert above has reported the error
}

}  // namespace inlay

#endif  // INLAY_CONFIGS_CONFIG_H_
