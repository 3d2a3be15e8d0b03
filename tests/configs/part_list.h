// Every kind of layer part, as parts that differ from each other in one number each.
#ifndef INLAY_TESTS_CONFIGS_PART_LIST_H_
#define INLAY_TESTS_CONFIGS_PART_LIST_H_

#include <cstddef>
#include <string_view>
#include <tuple>
#include <utility>

#include "configs/layers.h"

namespace inlay::part_list {

// A part of a kind, then one for each number of its shape, in which it differs from the first.
template <class... P>
struct Parts {
  static constexpr size_t kSize = sizeof...(P);
};

// How many members a shape has.
struct AnyValue {
  template <class T>
  constexpr operator T() const;  // NOLINT(google-explicit-constructor)
};
template <class Shape, size_t... i>
constexpr bool Takes(std::index_sequence<i...>) {
  return requires { Shape{(static_cast<void>(i), AnyValue())...}; };
}
template <class Shape, size_t count = 0>
constexpr size_t MemberCount() {
  if constexpr (Takes<Shape>(std::make_index_sequence<count + 1>())) {
    return MemberCount<Shape, count + 1>();
  } else {
    return count;
  }
}

// The shape with another value of one member.
template <class Shape, class T, class Value>
constexpr Shape With(Shape shape, T Shape::*member, Value value) {
  shape.*member = value;
  return shape;
}

using A = AttentionShape;
inline constexpr A kHeads{.heads = 4, .kv_heads = 2, .head_dim = 8};
inline constexpr Rope kRope{.base = 10'000};
using Attention =
    Parts<FullAttention<kHeads, kRope>, FullAttention<With(kHeads, &A::heads, 8), kRope>,
          FullAttention<With(kHeads, &A::kv_heads, 4), kRope>,
          FullAttention<With(kHeads, &A::head_dim, 16), kRope>,
          FullAttention<With(kHeads, &A::qk_norm, true), kRope>,
          FullAttention<With(kHeads, &A::query_scalar, 16), kRope>,
          FullAttention<With(kHeads, &A::soft_cap, 30), kRope>,
          FullAttention<With(kHeads, &A::bidirectional, true), kRope>,
          FullAttention<With(kHeads, &A::gated, true), kRope>,
          FullAttention<With(kHeads, &A::v_norm, true), kRope>,
          FullAttention<With(kHeads, &A::values_are_keys, true), kRope>,
          FullAttention<kHeads, With(kRope, &Rope::base, 20'000)>,
          FullAttention<kHeads, With(kRope, &Rope::scale, 8)>,
          FullAttention<kHeads, With(kRope, &Rope::interleaved, true)>,
          FullAttention<kHeads, With(kRope, &Rope::dims, 4)>,
          FullAttention<kHeads, With(kRope, &Rope::proportional, true)>,
          SlidingWindowAttention<kHeads, kRope, 16>, SlidingWindowAttention<kHeads, kRope, 32>>;
static_assert(Attention::kSize == 1 + MemberCount<A>() + MemberCount<Rope>() + 2);

template <class>
struct OfOwners;
template <class... Owner>
struct OfOwners<Parts<Owner...>> {
  using Type = Parts<SharedKvAttention<Owner>...>;
};
using SharedKv = OfOwners<Attention>::Type;

using M = Mamba2Shape;
inline constexpr M kSsm{.heads = 4, .head_dim = 8, .state_dim = 16};
using Mamba2s =
    Parts<Mamba2<kSsm>, Mamba2<With(kSsm, &M::heads, 8)>, Mamba2<With(kSsm, &M::head_dim, 16)>,
          Mamba2<With(kSsm, &M::state_dim, 32)>, Mamba2<With(kSsm, &M::groups, 2)>,
          Mamba2<With(kSsm, &M::conv_width, 3)>, Mamba2<With(kSsm, &M::normed, false)>>;
static_assert(Mamba2s::kSize == 1 + MemberCount<M>());

using D = DeltaNetShape;
inline constexpr D kDelta{.key_heads = 2, .value_heads = 4, .head_dim = 8};
using DeltaNets =
    Parts<DeltaNet<kDelta>, DeltaNet<With(kDelta, &D::key_heads, 4)>,
          DeltaNet<With(kDelta, &D::value_heads, 8)>, DeltaNet<With(kDelta, &D::head_dim, 16)>,
          DeltaNet<With(kDelta, &D::conv_width, 3)>>;
static_assert(DeltaNets::kSize == 1 + MemberCount<D>());

inline constexpr ShortConvShape kConv{.channels = 8};
using ShortConvs = Parts<ShortConv<kConv>, ShortConv<With(kConv, &ShortConvShape::channels, 16)>,
                         ShortConv<With(kConv, &ShortConvShape::width, 4)>>;
static_assert(ShortConvs::kSize == 1 + MemberCount<ShortConvShape>());

using GatedMlps = Parts<GatedMlp<8, Activation::kSilu>, GatedMlp<16, Activation::kSilu>,
                        GatedMlp<8, Activation::kGeluTanh>>;
using SquaredReluMlps = Parts<SquaredReluMlp<8>, SquaredReluMlp<16>>;
using GatedInputs = Parts<GatedInput<8, Activation::kSilu>, GatedInput<16, Activation::kSilu>,
                          GatedInput<8, Activation::kGeluTanh>>;

using E = MoeShape;
template <E kShape>
using Moe = MoeMlp<kShape, Activation::kSilu>;
inline constexpr E kExperts{.experts = 8,
                            .used_experts = 2,
                            .hidden = 8,
                            .shared_hidden = 8,
                            .routing = Routing::kBiasedLogistic,
                            .groups = 4,
                            .used_groups = 2};
using MoeMlps =
    Parts<Moe<kExperts>, Moe<With(kExperts, &E::experts, 16)>,
          Moe<With(kExperts, &E::used_experts, 3)>, Moe<With(kExperts, &E::hidden, 16)>,
          Moe<With(kExperts, &E::shared_hidden, 16)>, Moe<With(kExperts, &E::shared_gate, true)>,
          Moe<With(kExperts, &E::routing, Routing::kSoftmax)>, Moe<With(kExperts, &E::groups, 2)>,
          Moe<With(kExperts, &E::used_groups, 1)>, Moe<With(kExperts, &E::scale, Ratio{5, 2})>,
          Moe<With(kExperts, &E::latent, 8)>, MoeMlp<kExperts, Activation::kSquaredRelu>>;
static_assert(MoeMlps::kSize == 1 + MemberCount<E>() + 1);

// Check() allows one value of the other members.
inline constexpr E kBeside{.experts = 8, .used_experts = 2, .hidden = 8};
template <E kShape>
using Beside = MoeBesideMlp<kShape, 8, Activation::kSilu>;
using MoeBesideMlps =
    Parts<Beside<kBeside>, Beside<With(kBeside, &E::experts, 16)>,
          Beside<With(kBeside, &E::used_experts, 3)>, Beside<With(kBeside, &E::hidden, 16)>,
          MoeBesideMlp<kBeside, 16, Activation::kSilu>,
          MoeBesideMlp<kBeside, 8, Activation::kGeluTanh>>;

using Kinds = std::tuple<Attention, SharedKv, Mamba2s, DeltaNets, ShortConvs, GatedMlps,
                         SquaredReluMlps, GatedInputs, MoeMlps, MoeBesideMlps>;

// Whether a kind of this name is listed.
constexpr bool HasName(std::string_view name) {
  const auto of_kind = [&]<class... P>(Parts<P...>) { return ((P::kName == name) || ...); };
  return std::apply([&](auto... kind) { return (of_kind(kind) || ...); }, Kinds());
}

}  // namespace inlay::part_list

#endif  // INLAY_TESTS_CONFIGS_PART_LIST_H_
