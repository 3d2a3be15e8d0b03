// The attention mixer of a layer: projections, head norms, rotation, storing of keys and values,
// attention.
#ifndef INLAY_GEMMA_LIKE_ATTENTION_MIXER_H_
#define INLAY_GEMMA_LIKE_ATTENTION_MIXER_H_

#include <cstddef>
#include <iterator>

#include "configs/layers.h"
#include "gemma_like/arena.h"
#include "gemma_like/forward_state.h"
#include "gemma_like/weights.h"
#include "ops/attention.h"
#include "ops/norm.h"
#include "ops/matmul.h"
#include "ops/rope.h"

namespace inlay {

template <ModelConfig Config, class Layer>
struct AttentionMixer {
  static constexpr AttentionShape kShape = Layer::kShape;
  static constexpr size_t kQueryDim = size_t{kShape.heads} * kShape.head_dim;
  static constexpr size_t kKvDim = size_t{kShape.kv_heads} * kShape.head_dim;

  // y = mixer(x) for all rows of the batch, each sequence with the `ordinal`-th storage of this
  // layer type in its cache.
  static void Forward(const AttentionWeights& weights, int ordinal, ConstFloatRows angles,
                      ConstFloatRows x, FloatRows y, const ForwardState<Config>& s) {
    Arena::Scope scope(s.arena);
    FloatRows q = s.arena.Rows(x.rows, kQueryDim);
    FloatRows k = s.arena.Rows(x.rows, kKvDim);
    FloatRows v = s.arena.Rows(x.rows, kKvDim);
    FloatRows mixed = s.arena.Rows(x.rows, kQueryDim);
    s.input.Set(x);
    const MatMulTask projections[] = {{&weights.q, q}, {&weights.k, k}, {&weights.v, v}};
    MatMul(projections, std::size(projections), s.input, s.pool);
    if constexpr (kShape.qk_norm) {
      NormHeads(weights.q_norm.data(), kShape.heads, q);
      NormHeads(weights.k_norm.data(), kShape.kv_heads, k);
    }
    if constexpr (Layer::kRope.base != 0) {
      ApplyRope(angles, q);
      ApplyRope(angles, k);
    }
    const AttentionParams params{.heads = kShape.heads,
                                 .scale = Config::kAttentionScale,
                                 .soft_cap = Config::kAttentionSoftCap,
                                 .window = Layer::kWindow};
    for (const BatchPart<Config>& part : s.parts) {
      const KvView kv = part.cache->template Storage<Layer>(ordinal).view();
      StoreKv(k.Slice(part.row, part.rows), v.Slice(part.row, part.rows), part.position, kv);
      Attention(params, q.Slice(part.row, part.rows), part.position, kv,
                mixed.Slice(part.row, part.rows), s.pool);
    }
    s.input.Set(mixed);
    MatMul(weights.output, s.input, y, s.pool);
  }

  static constexpr size_t ScratchFloats(size_t rows) {
    return 2 * Arena::Floats(rows, kQueryDim) + 2 * Arena::Floats(rows, kKvDim);
  }

 private:
  static void NormHeads(const float* weight, size_t heads, FloatRows x) {
    FloatRows by_head(x.data, x.rows * heads, kShape.head_dim);
    RmsNorm(by_head, weight, Config::kNormEpsilon, by_head);
  }
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_ATTENTION_MIXER_H_
