// The forward pass of one layer, chosen by its type.
#ifndef INLAY_GEMMA_LIKE_BLOCK_H_
#define INLAY_GEMMA_LIKE_BLOCK_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "configs/config.h"
#include "configs/layers.h"
#include "gemma_like/arena.h"
#include "gemma_like/attention_mixer.h"
#include "gemma_like/forward_state.h"
#include "gemma_like/mamba2_mixer.h"
#include "gemma_like/mlp.h"
#include "gemma_like/weights.h"
#include "ops/row_ops.h"
#include "ops/thread_pool.h"
#include "ops/views.h"

namespace inlay {

// residual += kResidualScale * mixer(norm(residual)), then the same with the MLP.
template <ModelConfig Config, class Layer>
struct Block {
  using Mlp = typename Layer::Mlp;
  static constexpr bool kAttends = kIsAttention<Layer>;
  static constexpr bool kHasMlp = Mlp::kKind != MlpKind::kNone;

  // `angles` [rows, head_dim] are the rotations of the batch's positions for this layer type; empty
  // without rope.
  static void Forward(const LayerWeights<Layer>& weights, int ordinal, ConstFloatRows angles,
                      const ForwardState<Config>& s) {
    Arena::Scope scope(s.arena);
    const size_t rows = s.residual.rows;
    FloatRows normed = s.arena.Rows(rows, Config::kModelDim);
    FloatRows branch = s.arena.Rows(rows, Config::kModelDim);

    weights.mixer.Announce(normed, s.input);
    ForRows(s.pool, rows, [&](size_t begin, size_t end) {
      const size_t n = end - begin;
      RmsNorm(s.residual.Slice(begin, n), weights.norm.data(), Config::kNormEpsilon,
              normed.Slice(begin, n));
      s.input.RoundRows(begin, end);
    });
    if constexpr (kAttends) {
      AttentionMixer<Config, Layer>::Forward(weights.mixer, ordinal, angles, branch, s);
    } else {
      Mamba2Mixer<Config, Layer>::Forward(weights.mixer, ordinal, branch, s);
    }
    if constexpr (kHasMlp) weights.mlp.Announce(normed, s.input);
    ForRows(s.pool, rows, [&](size_t begin, size_t end) {
      const FloatRows residual = s.residual.Slice(begin, end - begin);
      AddBranch(weights.post_norm, branch.Slice(begin, end - begin), residual);
      if constexpr (kHasMlp) {
        RmsNorm(residual, weights.mlp_norm.data(), Config::kNormEpsilon,
                normed.Slice(begin, end - begin));
        s.input.RoundRows(begin, end);
      }
    });
    if constexpr (kHasMlp) {
      MlpForward<Mlp>::Forward(weights.mlp, branch, s.arena, s.input, s.pool);
      ForRows(s.pool, rows, [&](size_t begin, size_t end) {
        AddBranch(weights.mlp_post_norm, branch.Slice(begin, end - begin),
                  s.residual.Slice(begin, end - begin));
      });
    }
  }

  // Floats of the arena that Forward needs at most for this many rows.
  static constexpr size_t ScratchFloats(size_t rows) {
    size_t mixer = 0;
    if constexpr (kAttends) {
      mixer = AttentionMixer<Config, Layer>::ScratchFloats(rows);
    } else {
      mixer = Mamba2Mixer<Config, Layer>::ScratchFloats(rows);
    }
    size_t mlp = 0;
    if constexpr (kHasMlp) mlp = MlpForward<Mlp>::ScratchFloats(rows, Config::kModelDim);
    return 2 * Arena::Floats(rows, Config::kModelDim) + std::max(mixer, mlp);
  }

 private:
  static void AddBranch(const std::vector<float>& post_norm, FloatRows branch, FloatRows residual) {
    if constexpr (Config::kNormPlacement == NormPlacement::kPreAndPost) {
      RmsNorm(branch, post_norm.data(), Config::kNormEpsilon, branch);
    }
    AddScaled(branch, Config::kResidualScale, residual);
  }
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_BLOCK_H_
