// The weights of one layer as typed views, by the layer's type.
#ifndef INLAY_GEMMA_LIKE_WEIGHTS_H_
#define INLAY_GEMMA_LIKE_WEIGHTS_H_

#include <type_traits>
#include <vector>

#include "configs/layers.h"
#include "ops/matmul.h"
#include "ops/packed_matrix.h"
#include "ops/views.h"

namespace inlay {

// Vectors are copied from the file as float, matrices rearranged for the kernels. Matrices are
// [outputs, inputs].

struct AttentionWeights {
  PackedMatrix q;             // [heads * head_dim, model_dim]
  PackedMatrix k;             // [kv_heads * head_dim, model_dim]
  PackedMatrix v;             // as k
  PackedMatrix output;        // [model_dim, heads * head_dim]
  std::vector<float> q_norm;  // [head_dim], empty without qk_norm
  std::vector<float> k_norm;

  // Says that the products of the first matrices, with x, come next.
  void Announce(ConstFloatRows x, MatMulInput& input) const { input.Announce(x, {&q, &k, &v}); }
};

struct Mamba2Weights {
  PackedMatrix in;  // [2 * inner + 2 * groups * state_dim + heads, model_dim]: z, x, B, C, dt
  std::vector<float>
      conv;  // [conv_width, inner + 2 * groups * state_dim]: transposed from the file
  std::vector<float> conv_bias;  // [inner + 2 * groups * state_dim]
  std::vector<float> dt_bias;    // [heads]
  std::vector<float> a;          // [heads], negative
  std::vector<float> d;          // [heads]
  std::vector<float> norm;       // [inner]
  PackedMatrix out;              // [model_dim, inner]

  void Announce(ConstFloatRows x, MatMulInput& input) const { input.Announce(x, {&in}); }
};

struct GatedMlpWeights {
  PackedMatrix gate;  // [hidden, model_dim]
  PackedMatrix up;    // as gate
  PackedMatrix down;  // [model_dim, hidden]

  void Announce(ConstFloatRows x, MatMulInput& input) const { input.Announce(x, {&gate, &up}); }
};

struct MoeWeights {
  PackedMatrix router;                   // [experts, model_dim]
  std::vector<GatedMlpWeights> experts;  // by index
  GatedMlpWeights shared;                // empty without a shared expert

  void Announce(ConstFloatRows x, MatMulInput& input) const {
    input.Announce(x, {&router, &experts[0].gate});
  }
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
