// The vocabulary of layers: what a config's layer list is made of.
#ifndef INLAY_CONFIGS_LAYERS_H_
#define INLAY_CONFIGS_LAYERS_H_

#include <cstddef>

namespace inlay {

enum class LayerKind { kFullAttention, kSlidingWindowAttention, kMamba2 };
enum class MlpKind { kNone, kGated, kMoe };

// The function on the gate half of a gated MLP.
enum class Activation { kGeluTanh, kSilu };

// ---- MLPs: what follows the mixer in a layer ----

// The layer ends with its mixer.
struct NoMlp {
  static constexpr MlpKind kKind = MlpKind::kNone;
};

// down(activation(gate(x)) * up(x)).
template <int kHidden_, Activation kActivation_>
struct GatedMlp {
  static constexpr MlpKind kKind = MlpKind::kGated;
  static constexpr int kHidden = kHidden_;
  static constexpr Activation kActivation = kActivation_;
};

struct MoeShape {
  int experts = 0;
  int used_experts = 0;   // chosen per token by the router's largest logits
  int hidden = 0;         // of one expert
  int shared_hidden = 0;  // of the expert that every token passes; 0: none
};

// A router chooses `used_experts` gated MLPs per token, weighted by the softmax over the chosen
// logits; the shared expert is added with weight 1.
template <MoeShape kShape_, Activation kActivation_>
struct MoeMlp {
  static constexpr MlpKind kKind = MlpKind::kMoe;
  static constexpr MoeShape kShape = kShape_;
  static constexpr Activation kActivation = kActivation_;
};

// ---- Mixers ----

struct AttentionShape {
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  bool qk_norm = false;  // RMSNorm of every query and key head before rotation
};

// Rotary positions; angle i is position / scale * base^(-2 i / head_dim). Base 0: no positions at
// all.
struct Rope {
  int base = 0;
  int scale = 1;
};

// Every token sees all tokens before it.
template <AttentionShape kShape_, Rope kRope_, class Mlp_>
struct FullAttention {
  static constexpr LayerKind kKind = LayerKind::kFullAttention;
  static constexpr AttentionShape kShape = kShape_;
  static constexpr Rope kRope = kRope_;
  static constexpr int kWindow = 0;
  using Mlp = Mlp_;
};

// Every token sees the last kWindow tokens, itself included.
template <AttentionShape kShape_, Rope kRope_, int kWindow_, class Mlp_>
struct SlidingWindowAttention {
  static constexpr LayerKind kKind = LayerKind::kSlidingWindowAttention;
  static constexpr AttentionShape kShape = kShape_;
  static constexpr Rope kRope = kRope_;
  static constexpr int kWindow = kWindow_;
  using Mlp = Mlp_;
};

struct Mamba2Shape {
  int heads = 0;
  int head_dim = 0;
  int state_dim = 0;
  int groups = 1;
  int conv_width = 4;
};

// A selective state space layer (Dao & Gu 2024).
template <Mamba2Shape kShape_, class Mlp_>
struct Mamba2 {
  static constexpr LayerKind kKind = LayerKind::kMamba2;
  static constexpr Mamba2Shape kShape = kShape_;
  using Mlp = Mlp_;
};

template <class Layer>
inline constexpr bool kIsAttention = Layer::kKind != LayerKind::kMamba2;

}  // namespace inlay

#endif  // INLAY_CONFIGS_LAYERS_H_
