// The attention mixer of a layer: projections, head norms, rotation, storing of keys and values,
// attention.
#ifndef INLAY_GEMMA_LIKE_ATTENTION_MIXER_H_
#define INLAY_GEMMA_LIKE_ATTENTION_MIXER_H_

#include <cstddef>
#include <iterator>
#include <vector>

#include "configs/layers.h"
#include "gemma_like/arena.h"
#include "gemma_like/forward_state.h"
#include "gemma_like/weights.h"
#include "ops/attention.h"
#include "ops/matmul.h"
#include "ops/row_ops.h"
#include "ops/thread_pool.h"

namespace inlay {

template <ModelConfig Config, class Layer>
struct AttentionMixer {
  static constexpr AttentionShape kShape = Layer::kShape;
  static constexpr size_t kQueryDim = size_t{kShape.heads} * kShape.head_dim;
  static constexpr size_t kKvDim = size_t{kShape.kv_heads} * kShape.head_dim;

  // y = mixer(x) for all rows of the batch, x being the input's, each sequence with the
  // `ordinal`-th storage of this layer type in its cache.
  static void Forward(const AttentionWeights& weights, int ordinal, ConstFloatRows angles,
                      FloatRows y, const ForwardState<Config>& s) {
    Arena::Scope scope(s.arena);
    FloatRows q = s.arena.Rows(y.rows, kQueryDim);
    FloatRows k = s.arena.Rows(y.rows, kKvDim);
    FloatRows v = s.arena.Rows(y.rows, kKvDim);
    FloatRows mixed = s.arena.Rows(y.rows, kQueryDim);
    const MatMulTask projections[] = {{&weights.q, q}, {&weights.k, k}, {&weights.v, v}};
    MatMul(projections, std::size(projections), s.input, s.pool);
    ForRows(s.pool, y.rows, [&](size_t begin, size_t end) {
      PrepareHeads(weights.q_norm, kShape.heads, angles, q, begin, end - begin);
      PrepareHeads(weights.k_norm, kShape.kv_heads, angles, k, begin, end - begin);
    });
    const AttentionParams params{.heads = kShape.heads,
                                 .scale = Config::kAttentionScale,
                                 .soft_cap = Config::kAttentionSoftCap,
                                 .window = Layer::kWindow};
    for (const BatchPart<Config>& part : s.parts) {
      const KvView kv = part.cache->template Storage<Layer>(ordinal).view();
      ForRows(s.pool, part.rows, [&](size_t begin, size_t end) {
        const size_t row = part.row + begin;
        StoreKv(k.Slice(row, end - begin), v.Slice(row, end - begin), part.position + begin, kv);
      });
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
  // Normalises and rotates the heads of the rows [first, first + count) of all queries or keys.
  static void PrepareHeads(const std::vector<float>& norm, size_t heads, ConstFloatRows angles,
                           FloatRows all, size_t first, size_t count) {
    const FloatRows x = all.Slice(first, count);
    if constexpr (kShape.qk_norm) {
      const FloatRows by_head(x.data, count * heads, kShape.head_dim);
      RmsNorm(by_head, norm.data(), Config::kNormEpsilon, by_head);
    }
    if constexpr (Layer::kRope.base != 0) ApplyRope(angles.Slice(first, count), x);
  }
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_ATTENTION_MIXER_H_
