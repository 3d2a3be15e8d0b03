// A layer as a type: its norms, its mixers and its MLP, each part a kind of its own.
#ifndef INLAY_CONFIGS_LAYER_H_
#define INLAY_CONFIGS_LAYER_H_

#include <array>
#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include "configs/math.h"

namespace inlay {

// A part of a layer is a mixer, which exchanges information between the tokens of a sequence, an
// MLP, which does not, or a branch for an input that the model computes for the layer. The
// config-only half of its kind is a struct that derives from one of these three and has
//   kName                  its name in fingerprints and messages
//   Numbers()              a std::array<int, n> of all in which two parts of the kind may differ
//   Check()                true; static_asserts say in one sentence which number is impossible
//   Metadata<Config>(v)    constexpr: the metadata keys that describe it; see configs/metadata.h
// A mixer that reads what another one stores, and stores nothing, has that mixer's type as its
// StorageOwner; see StorageLayer in configs/config.h. A part that derives from InputPart has kDim,
// the size of its input.
struct MixerPart {};
struct MlpPart {};
struct InputPart {};

namespace layer_internal {
struct AnyConfig;
struct AnyVisitor;
}  // namespace layer_internal

template <class P>
concept LayerPart = requires {
  { P::kName } -> std::convertible_to<std::string_view>;
  P::Numbers().size();
  { P::Check() } -> std::same_as<bool>;
  &P::template Metadata<layer_internal::AnyConfig, layer_internal::AnyVisitor>;
};

template <class P>
concept Mixer = LayerPart<P> && std::derived_from<P, MixerPart>;
template <class P>
concept Mlp = LayerPart<P> && std::derived_from<P, MlpPart>;
template <class P>
concept LayerInput = LayerPart<P> && std::derived_from<P, InputPart>;

// Where RMSNorm is applied around a branch: before it, or also after it (before the residual
// addition).
struct PreNorm {
  static constexpr bool kPost = false;
  // The layer's last operation multiplies the residual stream by a scalar of the file.
  static constexpr bool kScalesStream = false;
  // The tensor of the norm between mixers and MLP. An architecture whose files call it otherwise
  // has norms that derive from these.
  static constexpr std::string_view kMlpNormTensor = "ffn_norm.weight";
};
struct PreAndPostNorm : PreNorm {
  static constexpr bool kPost = true;
};

// A part whose output is multiplied by kBy before the residual addition.
template <class Part, Ratio kBy>
struct Scaled {};

// Mixers that read the same normed input; their outputs are added to the residual stream.
template <class... M>
struct Mixers {
  static constexpr size_t kSize = sizeof...(M);
};

// The layer ends with its mixers.
struct NoMlp {};

// The layer has no input but the residual stream.
struct NoInput {};

namespace layer_internal {

template <class P>
struct Unscaled {
  using Part = P;
  static constexpr float kMultiplier = 1.0f;
};
template <class P, Ratio kBy>
struct Unscaled<Scaled<P, kBy>> {
  static_assert(kBy.den != 0, "the denominator of a multiplier must not be 0");
  using Part = P;
  static constexpr float kMultiplier = kBy.value();
};

}  // namespace layer_internal

// residual += sum over the mixers of multiplier * mixer(norm(residual)), then
// residual += multiplier * mlp(norm(residual)), then residual += input branch(residual, input),
// then, if the norms say so, residual *= scale.
template <class Norms_, class Mixers_, class Mlp_ = NoMlp, class Input_ = NoInput>
struct Layer;

template <class Norms_, class... M, class Mlp_, class Input_>
struct Layer<Norms_, Mixers<M...>, Mlp_, Input_> {
  using Norms = Norms_;
  using Mixers = inlay::Mixers<typename layer_internal::Unscaled<M>::Part...>;
  using Mlp = typename layer_internal::Unscaled<Mlp_>::Part;
  using Input = Input_;
  static constexpr bool kHasMlp = !std::is_same_v<Mlp, NoMlp>;
  static constexpr bool kHasInput = !std::is_same_v<Input, NoInput>;
  static constexpr std::array<float, sizeof...(M)> kMixerMultipliers{
      layer_internal::Unscaled<M>::kMultiplier...};
  static constexpr float kMlpMultiplier = layer_internal::Unscaled<Mlp_>::kMultiplier;
};

namespace layer_internal {

template <class List>
struct MixerList;
template <class... M>
struct MixerList<Mixers<M...>> {
  template <class F>
  static constexpr void ForEach(F& f) {
    [[maybe_unused]] size_t index = 0;
    (f.template operator()<M>(index++), ...);
  }
  template <template <class...> class Of, template <class> class Each>
  using Map = Of<Each<M>...>;
  static constexpr bool kAreMixers = (std::derived_from<M, MixerPart> && ... && true);
};

}  // namespace layer_internal

// Of<Each<M>...> for the mixers M of a layer: one thing for each, such as a tuple of storages.
template <class L, template <class...> class Of, template <class> class Each>
using ForMixers = typename layer_internal::MixerList<typename L::Mixers>::template Map<Of, Each>;

// Calls f.operator()<M>(size_t index) for each mixer of a layer.
template <class L, class F>
constexpr void ForEachMixer(F&& f) {
  layer_internal::MixerList<typename L::Mixers>::ForEach(f);
}

// The same without the index for each mixer, then the MLP and the input branch, if there are any.
template <class L, class F>
constexpr void ForEachPart(F&& f) {
  ForEachMixer<L>([&]<class M>(size_t) { f.template operator()<M>(); });
  if constexpr (L::kHasMlp) f.template operator()<typename L::Mlp>();
  if constexpr (L::kHasInput) f.template operator()<typename L::Input>();
}

// The index of mixer M in a layer; the number of its mixers if it does not have it.
template <class L, class M>
constexpr size_t IndexOfMixer() {
  size_t index = L::Mixers::kSize;
  ForEachMixer<L>([&]<class Other>(size_t i) {
    if (std::is_same_v<Other, M>) index = i;
  });
  return index;
}

namespace layer_internal {

template <class L>
constexpr bool AreParts() {
  bool parts = true;
  ForEachPart<L>([&]<class P>() { parts = parts && LayerPart<P>; });
  return parts;
}

}  // namespace layer_internal

// True for a layer whose parts' numbers are consistent; otherwise a static_assert says in one
// sentence what is wrong.
template <class L>
constexpr bool CheckLayer() {
  constexpr bool kIsMlp = !L::kHasMlp || std::derived_from<typename L::Mlp, MlpPart>;
  constexpr bool kIsInput = !L::kHasInput || std::derived_from<typename L::Input, InputPart>;
  constexpr bool kInPlace =
      layer_internal::MixerList<typename L::Mixers>::kAreMixers && kIsMlp && kIsInput;
  static_assert(
      kInPlace,
      "a layer is Layer<norms, Mixers<mixers...>, MLP or NoMlp, input branch or NoInput>");
  static_assert(L::Mixers::kSize > 0 || L::kHasMlp, "a layer must have a mixer or an MLP");
  constexpr bool kAreParts = layer_internal::AreParts<L>();
  static_assert(!kInPlace || kAreParts,
                "each part of a layer must have kName, Numbers(), Check() and Metadata()");
  if constexpr (kInPlace && kAreParts) {
    bool valid = true;
    ForEachPart<L>([&]<class P>() { valid = valid && P::Check(); });
    return valid;
  }
  return true;  // a static_assert above has reported the error
}

}  // namespace inlay

#endif  // INLAY_CONFIGS_LAYER_H_
