// The weights of one layer as typed views, by the layer's type.
#ifndef INLAY_GEMMA_LIKE_WEIGHTS_H_
#define INLAY_GEMMA_LIKE_WEIGHTS_H_

#include <type_traits>
#include <vector>

#include "configs/layers.h"
#include "ops/views.h"

namespace inlay {

// Vectors are copied from the file as float; matrices are views of its bytes. Matrices are
// [outputs, inputs].

struct AttentionWeights {
  WeightMatrix q;             // [heads * head_dim, model_dim]
  WeightMatrix k;             // [kv_heads * head_dim, model_dim]
  WeightMatrix v;             // as k
  WeightMatrix output;        // [model_dim, heads * head_dim]
  std::vector<float> q_norm;  // [head_dim], empty without qk_norm
  std::vector<float> k_norm;
};

struct Mamba2Weights {
  WeightMatrix in;  // [2 * inner + 2 * groups * state_dim + heads, model_dim]: z, x, B, C, dt
  std::vector<float>
      conv;  // [conv_width, inner + 2 * groups * state_dim]: transposed from the file
  std::vector<float> conv_bias;  // [inner + 2 * groups * state_dim]
  std::vector<float> dt_bias;    // [heads]
  std::vector<float> a;          // [heads], negative
  std::vector<float> d;          // [heads]
  std::vector<float> norm;       // [inner]
  WeightMatrix out;              // [model_dim, inner]
};

struct GatedMlpWeights {
  WeightMatrix gate;  // [hidden, model_dim]
  WeightMatrix up;    // as gate
  WeightMatrix down;  // [model_dim, hidden]
};

struct MoeWeights {
  WeightMatrix router;     // [experts, model_dim]
  WeightMatrix gate;       // [experts * hidden, model_dim]: expert after expert
  WeightMatrix up;         // as gate
  WeightMatrix down;       // [experts * model_dim, hidden]
  GatedMlpWeights shared;  // empty without a shared expert
};

struct NoWeights {};

template <class Mlp>
using MlpWeights =
    std::conditional_t<Mlp::kKind == MlpKind::kGated, GatedMlpWeights,
                       std::conditional_t<Mlp::kKind == MlpKind::kMoe, MoeWeights, NoWeights>>;

template <class Layer>
struct LayerWeights {
  std::vector<float> norm;       // [model_dim], before the mixer
  std::vector<float> post_norm;  // after it; empty unless the config's norms are kPreAndPost
  std::conditional_t<kIsAttention<Layer>, AttentionWeights, Mamba2Weights> mixer;
  std::vector<float> mlp_norm;  // before and after the MLP, likewise
  std::vector<float> mlp_post_norm;
  MlpWeights<typename Layer::Mlp> mlp;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_WEIGHTS_H_
