// The metadata keys that follow from a config's layers, for any family.
#ifndef INLAY_CONFIGS_METADATA_H_
#define INLAY_CONFIGS_METADATA_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "configs/config.h"

namespace inlay {

// A config's Metadata(v) tells a visitor each key (without the architecture's prefix) and the value
// that its files must have. A reader compares, a writer writes:
//   v.Int(key, value)            an unsigned integer; a file without the key is refused
//   v.Int(key, value, absent)    the same, but a file without the key means `absent`
//   v.Float(key, value[, absent])
//   v.Flag(key, value[, absent])
//   v.Text(key, value[, absent])
//   v.Ints(key, array)           one integer for each layer; a file may store a single one when all
//                                are equal
//   v.Texts(key, array)          one text for each layer
//   v.VocabSize(value)           "vocab_size"; a file without the key means the rows of its
//                                embedding
// Every key that changes what the model computes must be told, also those that its files usually
// lack: the value that they then mean is `absent`.

// One value per layer: f.operator()<Layer>() for each.
template <class T, class C, class F>
constexpr std::array<T, static_cast<size_t>(C::Layers::kSize)> PerLayerValues(F f) {
  std::array<T, static_cast<size_t>(C::Layers::kSize)> values{};
  ForEachLayer<C>(
      [&]<class Layer>(int i) { values[static_cast<size_t>(i)] = f.template operator()<Layer>(); });
  return values;
}

namespace metadata_internal {

// The first layer type of a list that has the property; void when none has.
template <template <class> class Has, class List>
struct First {
  using type = void;
};
template <template <class> class Has, class Head, class... Rest>
struct First<Has, LayerList<Head, Rest...>> {
  using type = typename std::conditional_t<Has<Head>::value, std::type_identity<Head>,
                                           First<Has, LayerList<Rest...>>>::type;
};
template <class L>
using IsAttention = std::bool_constant<kIsAttention<L>>;
template <class L>
using IsMamba2 = std::bool_constant<!kIsAttention<L>>;
template <class L>
using IsSliding = std::bool_constant<L::kKind == LayerKind::kSlidingWindowAttention>;
template <class L>
using IsFull = std::bool_constant<L::kKind == LayerKind::kFullAttention>;

}  // namespace metadata_internal

// The first layer type of each kind in a config, or void.
template <class C>
using FirstAttention =
    typename metadata_internal::First<metadata_internal::IsAttention, typename C::Layers>::type;
template <class C>
using FirstFull =
    typename metadata_internal::First<metadata_internal::IsFull, typename C::Layers>::type;
template <class C>
using FirstSliding =
    typename metadata_internal::First<metadata_internal::IsSliding, typename C::Layers>::type;
template <class C>
using FirstMamba2 =
    typename metadata_internal::First<metadata_internal::IsMamba2, typename C::Layers>::type;

// The keys that every architecture has.
template <class C, class Visitor>
void CommonMetadata(Visitor& v) {
  v.Int("embedding_length", C::kModelDim);
  v.Int("block_count", C::Layers::kSize);
  v.VocabSize(C::kVocabSize);
  v.Float("attention.layer_norm_rms_epsilon", C::kNormEpsilon);
}

// Heads and head sizes. Layers without attention count 0 kv heads, as granitehybrid files write it.
template <class C, class Visitor>
void AttentionMetadata(Visitor& v) {
  using Layer = FirstAttention<C>;
  v.Int("attention.head_count", Layer::kShape.heads);
  v.Ints("attention.head_count_kv", PerLayerValues<int64_t, C>([]<class L>() -> int64_t {
           if constexpr (kIsAttention<L>) return L::kShape.kv_heads;
           return 0;
         }));
  // A file without the key means model dim / heads.
  constexpr int kAbsent = C::kModelDim / Layer::kShape.heads;
  v.Int("attention.key_length", Layer::kShape.head_dim, kAbsent);
  v.Int("attention.value_length", Layer::kShape.head_dim, kAbsent);
  v.Flag("attention.causal", true, true);
}

// Rotary positions of full layers, which may be scaled, and of sliding layers, which are not.
// `absent_sliding_base` is the architecture's own default.
template <class C, class Visitor>
void RopeMetadata(Visitor& v, int absent_sliding_base) {
  using Full = FirstFull<C>;
  using Sliding = FirstSliding<C>;
  static_assert(Sliding::kRope.scale == 1, "the positions of sliding layers are not scaled");
  v.Float("rope.freq_base", Full::kRope.base, 10'000);
  v.Float("rope.freq_base_swa", Sliding::kRope.base, absent_sliding_base);
  v.Int("rope.dimension_count", Full::kShape.head_dim, Full::kShape.head_dim);
  v.Float("rope.scaling.factor", Full::kRope.scale, 1);
  if constexpr (Full::kRope.scale != 1) v.Text("rope.scaling.type", "linear", "linear");
}

// Routed experts; a dense model counts none.
template <class Visitor>
void ExpertMetadata(Visitor& v, MoeShape shape) {
  v.Int("expert_count", shape.experts, 0);
  v.Int("expert_used_count", shape.used_experts, 0);
  // Dense models of some families write the key too, and nothing reads it then.
  if (shape.experts != 0) v.Int("expert_shared_feed_forward_length", shape.shared_hidden, 0);
}

// The state space layers.
template <class C, class Visitor>
void Mamba2Metadata(Visitor& v) {
  constexpr Mamba2Shape kShape = FirstMamba2<C>::kShape;
  v.Int("ssm.conv_kernel", kShape.conv_width);
  v.Int("ssm.inner_size", kShape.heads * kShape.head_dim);
  v.Int("ssm.state_size", kShape.state_dim);
  v.Int("ssm.time_step_rank", kShape.heads);
  v.Int("ssm.group_count", kShape.groups);
}

}  // namespace inlay

#endif  // INLAY_CONFIGS_METADATA_H_
