// Layer lists as types: building them, walking them, and storing one thing per layer.
#ifndef INLAY_CONFIGS_PATTERN_H_
#define INLAY_CONFIGS_PATTERN_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

namespace inlay {

// A list of layer types, in the order of the model.
template <class... Layers>
struct LayerList {
  static constexpr int kSize = sizeof...(Layers);
};

namespace pattern_internal {

template <class... Items>
struct Concat {
  using type = LayerList<>;
};
template <class... A>
struct Concat<LayerList<A...>> {
  using type = LayerList<A...>;
};
template <class... A, class... B, class... Rest>
struct Concat<LayerList<A...>, LayerList<B...>, Rest...> {
  using type = typename Concat<LayerList<A..., B...>, Rest...>::type;
};

// An item of a pattern is a layer or a list of layers.
template <class Item>
struct AsList {
  using type = LayerList<Item>;
};
template <class... Layers>
struct AsList<LayerList<Layers...>> {
  using type = LayerList<Layers...>;
};

// Doubling keeps the depth of instantiation logarithmic in the count.
template <int kCount, class List>
struct Repeated {
  using Half = typename Repeated<kCount / 2, List>::type;
  using Even = typename Concat<Half, Half>::type;
  using type = std::conditional_t<kCount % 2 == 0, Even, typename Concat<Even, List>::type>;
};
template <class List>
struct Repeated<0, List> {
  using type = LayerList<>;
};

// Where kCount is negative, it says so once and stands for 0.
template <int kCount>
constexpr int CheckedCount() {
  static_assert(kCount >= 0, "the number of layers in a pattern must not be negative");
  return kCount < 0 ? 0 : kCount;
}

template <std::array<char, 128> kLetters, template <char> class LayerOf, class Indices>
struct SpelledList;
template <std::array<char, 128> kLetters, template <char> class LayerOf, size_t... kIndices>
struct SpelledList<kLetters, LayerOf, std::index_sequence<kIndices...>> {
  using type = LayerList<LayerOf<kLetters[kIndices]>...>;
};

template <class Seen, class... Layers>
struct Distinct {
  using type = Seen;
};
template <class... Seen, class First, class... Rest>
struct Distinct<LayerList<Seen...>, First, Rest...> {
  static constexpr bool kKnown = (std::is_same_v<Seen, First> || ...);
  using type =
      typename Distinct<std::conditional_t<kKnown, LayerList<Seen...>, LayerList<Seen..., First>>,
                        Rest...>::type;
};

template <class List>
struct Traits;
template <class... Layers>
struct Traits<LayerList<Layers...>> {
  using DistinctLayers = typename Distinct<LayerList<>, Layers...>::type;

  template <class Layer>
  static constexpr int Count() {
    return (0 + ... + static_cast<int>(std::is_same_v<Layers, Layer>));
  }

  template <size_t index>
  using At = std::tuple_element_t<index, std::tuple<Layers...>>;

  template <class F>
  static constexpr void ForEach(F&& f) {
    int index = 0;
    (f.template operator()<Layers>(index++), ...);
  }
};

// What PerLayer needs of the distinct layer types: an array for each, and a count for each.
template <class List, class Distinct>
struct LayerTypes;
template <class List, class... Type>
struct LayerTypes<List, LayerList<Type...>> {
  template <template <class> class T>
  using Storage =
      std::tuple<std::array<T<Type>, static_cast<size_t>(Traits<List>::template Count<Type>())>...>;
  using Counters = std::array<int, sizeof...(Type)>;

  template <class Layer>
  static constexpr size_t IndexOf() {
    size_t at = 0;
    (void)((std::is_same_v<Type, Layer> || (++at, false)) || ...);
    return at;
  }
};

}  // namespace pattern_internal

// Layers and lists of layers, one after the other.
template <class... Items>
using Chain =
    typename pattern_internal::Concat<typename pattern_internal::AsList<Items>::type...>::type;

// The items in order, kCount times.
template <int kCount, class... Items>
using Repeat = typename pattern_internal::Repeated<pattern_internal::CheckedCount<kCount>(),
                                                   Chain<Items...>>::type;

namespace pattern_internal {

template <int kCount, int kPeriod, class Others, class Last>
struct PeriodicList {
  static_assert(kPeriod > 0, "the period of a model's layers must be positive");
  static constexpr int kLength = kPeriod > 0 ? kPeriod : 1;
  using type = Chain<Repeat<kCount / kLength, Repeat<kLength - 1, Others>, Last>,
                     Repeat<kCount % kLength, Others>>;
};

}  // namespace pattern_internal

// kCount layers: Last at kPeriod - 1, 2 * kPeriod - 1, ..., Others elsewhere.
template <int kCount, int kPeriod, class Others, class Last>
using Periodic = typename pattern_internal::PeriodicList<kCount, kPeriod, Others, Last>::type;

// A set of layer indices, as a template argument.
struct LayerMask {
  uint64_t bits = 0;
  bool valid = true;  // false: it was made of an index that no bit stands for

  constexpr bool Has(size_t index) const { return index < 64 && (bits >> index & 1) != 0; }
  // The indices from `count` on, less `count`.
  constexpr LayerMask operator>>(int count) const {
    return {0 <= count && count < 64 ? bits >> count : 0, valid};
  }
};

// The mask of these layer indices, 0 to 63.
template <class... Indices>
constexpr LayerMask LayersAt(Indices... indices) {
  if (!((0 <= indices && indices < 64) && ...)) return {.valid = false};
  return {.bits = (uint64_t{0} | ... | (uint64_t{1} << indices))};
}

// The mask of the layer indices period - 1, 2 * period - 1, ...
constexpr LayerMask EveryLayerAt(int period) {
  if (period <= 0) return {.valid = false};
  LayerMask mask;
  for (int i = period - 1; i < 64; i += period) mask.bits |= uint64_t{1} << i;
  return mask;
}

namespace pattern_internal {

template <LayerMask kMask, class AtSetBits, class Elsewhere, class Indices>
struct MaskedList;
template <LayerMask kMask, class AtSetBits, class Elsewhere, size_t... kIndices>
struct MaskedList<kMask, AtSetBits, Elsewhere, std::index_sequence<kIndices...>> {
  using type = LayerList<std::conditional_t<kMask.Has(kIndices), AtSetBits, Elsewhere>...>;
};

template <int kCount, LayerMask kMask, class AtSetBits, class Elsewhere>
struct CheckedMask {
  static_assert(kMask.valid, "a mask's layer indices are 0 to 63, and its period is positive");
  static_assert(kCount <= 64, "a mask is of at most 64 layers");
  using Indices = std::make_index_sequence<static_cast<size_t>(CheckedCount<kCount>())>;
  using type = typename MaskedList<kMask, AtSetBits, Elsewhere, Indices>::type;
};

}  // namespace pattern_internal

// kCount layers (at most 64): AtSetBits at the layers of the mask, Elsewhere at the others. For
// models whose layer order is not periodic.
template <int kCount, LayerMask kMask, class AtSetBits, class Elsewhere>
using Masked = typename pattern_internal::CheckedMask<kCount, kMask, AtSetBits, Elsewhere>::type;

// A text with a letter for each layer, as a template argument; at most 127.
struct LayerLetters {
  std::array<char, 128> letters{};
  size_t count = 0;

  constexpr LayerLetters() = default;
  constexpr LayerLetters(const char* text) {  // NOLINT(google-explicit-constructor)
    while (text[count] != 0) {
      letters[count] = text[count];
      ++count;
    }
  }
};

// LayerOf<letter> for each letter. For models whose layers are of more than two types and not
// periodic.
template <LayerLetters kLetters, template <char> class LayerOf>
using Spelled =
    typename pattern_internal::SpelledList<kLetters.letters, LayerOf,
                                           std::make_index_sequence<kLetters.count>>::type;

// Each layer type of the list once, in order of first appearance.
template <class List>
using DistinctLayers = typename pattern_internal::Traits<List>::DistinctLayers;

// Calls f.operator()<Layer>(int index) for every layer of a config in order. The body is
// instantiated once per distinct layer type.
template <class Config, class F>
constexpr void ForEachLayer(F&& f) {
  pattern_internal::Traits<typename Config::Layers>::ForEach(f);
}

// The same for each distinct layer type; `index` counts these.
template <class Config, class F>
constexpr void ForEachLayerType(F&& f) {
  pattern_internal::Traits<DistinctLayers<typename Config::Layers>>::ForEach(f);
}

// How many layers of this type the list has.
template <class List, class Layer>
inline constexpr int kLayerCount = pattern_internal::Traits<List>::template Count<Layer>();

// The layer at this index of the list.
template <class List, size_t index>
using LayerTypeAt = typename pattern_internal::Traits<List>::template At<index>;

// The index that ForEachLayerType calls this layer type with.
template <class Config, class Layer>
inline constexpr size_t kLayerTypeIndex = pattern_internal::LayerTypes<
    typename Config::Layers, DistinctLayers<typename Config::Layers>>::template IndexOf<Layer>();

// The position of a layer among all layers of the model, and among those of its type.
struct LayerAt {
  int index = 0;
  int ordinal = 0;
};

// One T<Layer> for each layer of a config, held by value.
template <class Config, template <class> class T>
class PerLayer {
  using Types = pattern_internal::LayerTypes<typename Config::Layers,
                                             DistinctLayers<typename Config::Layers>>;

 public:
  // The element of the `ordinal`-th layer of this type, counted from 0 in the model's order.
  template <class Layer>
  T<Layer>& Get(int ordinal) {
    return std::get<kLayerTypeIndex<Config, Layer>>(storage_)[static_cast<size_t>(ordinal)];
  }
  template <class Layer>
  const T<Layer>& Get(int ordinal) const {
    return std::get<kLayerTypeIndex<Config, Layer>>(storage_)[static_cast<size_t>(ordinal)];
  }

  // Calls f.operator()<Layer>(LayerAt at, T<Layer>& element) for every layer in the model's order.
  template <class F>
  void ForEach(F&& f) {
    Visit(*this, f);
  }
  template <class F>
  void ForEach(F&& f) const {
    Visit(*this, f);
  }

 private:
  template <class Self, class F>
  static void Visit(Self& self, F& f) {
    typename Types::Counters next{};
    ForEachLayer<Config>([&]<class Layer>(int index) {
      const int ordinal = next[kLayerTypeIndex<Config, Layer>]++;
      f.template operator()<Layer>(LayerAt{index, ordinal}, self.template Get<Layer>(ordinal));
    });
  }

  typename Types::template Storage<T> storage_;
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_PATTERN_H_
