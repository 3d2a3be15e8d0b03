// Attention over all tokens before a token or over a sliding window: the config-only half.
#ifndef INLAY_CONFIGS_LAYERS_ATTENTION_H_
#define INLAY_CONFIGS_LAYERS_ATTENTION_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "configs/layer.h"
#include "configs/math.h"

namespace inlay {

struct AttentionShape {
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  bool qk_norm = false;  // RMSNorm of every query and key head before rotation
  // Query-key products are divided by the square root of this; 0: of head_dim.
  int query_scalar = 0;
  int soft_cap = 0;  // then replaced by cap * tanh(product / cap); 0: no cap
  // Tokens attend to later ones too, which only a model that embeds texts can do.
  bool bidirectional = false;
  // What attention returns is multiplied by the logistic of a gate, a second projection of the
  // input: of each head, the query's matrix has the rows of the query, then those of the gate.
  bool gated = false;
  // Every head of values is divided by its root mean square, as RMSNorm without a weight does.
  bool v_norm = false;
  // There is no matrix for values: a value is the key as projected, before its norm and rotation.
  bool values_are_keys = false;

  // What query-key products are multiplied by.
  constexpr double Scale() const {
    return 1 / ConstexprSqrt(query_scalar == 0 ? head_dim : query_scalar);
  }
};

// Rotary positions; angle i is position / scale * base^(-2 i / dims). Base 0: no positions at all.
struct Rope {
  int64_t base = 0;
  int scale = 1;
  // Angle i rotates elements 2 * i and 2 * i + 1 of a head, not i and i + dims / 2.
  bool interleaved = false;
  int dims = 0;  // how many elements of a head are rotated, its first ones; 0: all
  // As many elements are rotated, but by the first dims / 2 of the angles that a rotation of all
  // elements has, whose other angles are 0: they are the first ones of each half of a head.
  bool proportional = false;
};

// The values that attention keys have in an architecture's files when they are missing. A config
// whose architecture differs from these defaults has a member kAttentionKeys.
struct AttentionKeys {
  // False: the scale is the architecture's own and its files do not store it.
  bool stores_scale = true;
  int absent_soft_cap = 0;
  int absent_rope_base = 10'000;
  int absent_rope_scale = 1;
  int absent_sliding_rope_base = 10'000;
  bool absent_causal = true;
  // None: files without the key are refused.
  std::optional<int64_t> absent_window = std::nullopt;
  // How many heads of keys files give layers that do not attend; kAnyValue of configs/metadata.h
  // where another key says which these are.
  int64_t kv_heads_elsewhere = 0;
  // Sliding layers have keys of their own for the dims of heads, which end in "_swa".
  bool own_sliding_dims = false;
};

template <class Config>
constexpr AttentionKeys AttentionKeysOf() {
  if constexpr (requires { Config::kAttentionKeys; }) return Config::kAttentionKeys;
  return {};
}

// Every token attends to the last kWindow_ tokens, itself included; if bidirectional, to those at
// most kWindow_ / 2 before and after it. With kWindow_ 0, to all of them.
template <AttentionShape kShape_, Rope kRope_, int kWindow_>
struct AttentionMixer : MixerPart {
  static constexpr AttentionShape kShape = kShape_;
  static constexpr Rope kRope = kRope_;
  static constexpr int kWindow = kWindow_;
  static constexpr bool kSliding = kWindow != 0;
  static constexpr bool kSeesLaterTokens = kShape.bidirectional;
  static constexpr std::string_view kName = kSliding ? "swa" : "attention";

  // Elements of a head that have an angle, and how many of these angles depend on the position.
  static constexpr int kRotated =
      kRope.dims == 0 || kRope.proportional ? kShape.head_dim : kRope.dims;
  static constexpr int kTurning = (kRope.dims == 0 ? kShape.head_dim : kRope.dims) / 2;

  static constexpr std::array<int, 9> Numbers() {
    constexpr int kFlags = int{kShape.qk_norm} + 2 * int{kRope.interleaved} +
                           4 * int{kShape.bidirectional} + 8 * int{kShape.gated} + 16 * kRope.dims +
                           (int{kShape.v_norm} << 20) + (int{kShape.values_are_keys} << 21) +
                           (int{kRope.proportional} << 22);
    // What is too large for an int is a number of millions in practice.
    constexpr int64_t kMillion = 1'000'000;
    constexpr auto kBase =
        static_cast<int>(kRope.base < 1000 * kMillion ? kRope.base : -(kRope.base / kMillion));
    return {kShape.heads,    kShape.kv_heads, kShape.head_dim, kFlags, kShape.query_scalar,
            kShape.soft_cap, kBase,           kRope.scale,     kWindow};
  }

  static constexpr bool Check() {
    static_assert(kShape.heads > 0 && kShape.kv_heads > 0 && kShape.head_dim > 0,
                  "heads, kv_heads and head_dim must be positive");
    static_assert(kShape.kv_heads <= 0 || kShape.heads % kShape.kv_heads == 0,
                  "heads must be a multiple of kv_heads");
    static_assert(kRope.base == 0 || kRotated % 2 == 0, "head_dim must be even to be rotated");
    static_assert(kRope.base < 1'000'000'000 || kRope.base % 1'000'000 == 0,
                  "a rope base from 1e9 on must be a multiple of 1e6");
    static_assert(kRope.dims >= 0 && kRope.dims <= kShape.head_dim,
                  "the rotated dims of a head must be between 0 and head_dim");
    static_assert(!kShape.gated || kShape.qk_norm, "gated attention must have qk_norm");
    static_assert(!kShape.values_are_keys || kShape.v_norm, "values that are keys need v_norm");
    static_assert(!kRope.proportional || (!kRope.interleaved && kRope.dims > 0),
                  "proportional rotation is one of halves and needs the rotated dims of a head");
    static_assert(kRope.base >= 0 && kRope.scale > 0,
                  "the rope base must not be negative and its scale must be positive");
    static_assert(kWindow >= 0, "the window of a sliding-window layer must be positive");
    static_assert(!kSliding || kRope.scale == 1, "the positions of sliding layers are not scaled");
    static_assert(kShape.query_scalar >= 0 && kShape.soft_cap >= 0,
                  "query_scalar and soft_cap must not be negative");
    return true;
  }

  template <class Config, class Visitor>
  static constexpr void Metadata(Visitor& v) {
    constexpr AttentionKeys kKeys = AttentionKeysOf<Config>();
    v.Int("attention.head_count", kShape.heads);
    v.PerLayer("attention.head_count_kv", kShape.kv_heads, kKeys.kv_heads_elsewhere);
    // A file without the key means model dim / heads.
    constexpr int kAbsent = Quotient(Config::kModelDim, kShape.heads);
    constexpr bool kOwnDims = kSliding && kKeys.own_sliding_dims;
    v.Int(kOwnDims ? "attention.key_length_swa" : "attention.key_length", kShape.head_dim, kAbsent);
    v.Int(kOwnDims ? "attention.value_length_swa" : "attention.value_length", kShape.head_dim,
          kAbsent);
    v.Flag("attention.causal", !kShape.bidirectional, kKeys.absent_causal);
    if constexpr (kKeys.stores_scale) {
      v.Float("attention.scale", kShape.Scale(), 1 / ConstexprSqrt(kShape.head_dim));
    }
    if constexpr (kShape.soft_cap != kKeys.absent_soft_cap || kShape.soft_cap != 0) {
      v.Float("attn_logit_softcapping", kShape.soft_cap, kKeys.absent_soft_cap);
    }
    if constexpr (kSliding) v.Int("attention.sliding_window", kWindow, kKeys.absent_window);
    if constexpr (kRope.base != 0) RopeMetadata<Config>(v);
  }

 private:
  template <class Config, class Visitor>
  static constexpr void RopeMetadata(Visitor& v) {
    constexpr AttentionKeys kKeys = AttentionKeysOf<Config>();
    v.Int(kSliding && kKeys.own_sliding_dims ? "rope.dimension_count_swa" : "rope.dimension_count",
          kRotated, kShape.head_dim);
    // What llama.cpp multiplies every rotated query and key by.
    v.Float("rope.scaling.attn_factor", 1, 1);
    if constexpr (kSliding) {
      v.Float("rope.freq_base_swa", kRope.base, kKeys.absent_sliding_rope_base);
    } else {
      v.Float("rope.freq_base", kRope.base, kKeys.absent_rope_base);
      v.Float("rope.scaling.factor", kRope.scale, kKeys.absent_rope_scale);
      // Other types have other angles, or scale queries and keys, whatever the factor is.
      if constexpr (kRope.scale != 1) {
        v.Text("rope.scaling.type", "linear", "linear");
      } else {
        v.Text("rope.scaling.type", "none", "none", "linear");
      }
    }
  }
};

template <AttentionShape kShape, Rope kRope>
using FullAttention = AttentionMixer<kShape, kRope, 0>;

// Check() refuses a window of 0, which would silently mean full attention.
template <AttentionShape kShape, Rope kRope, int kWindow>
using SlidingWindowAttention = AttentionMixer<kShape, kRope, (kWindow == 0 ? -1 : kWindow)>;

}  // namespace inlay

#endif  // INLAY_CONFIGS_LAYERS_ATTENTION_H_
