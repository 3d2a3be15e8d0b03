// The weights of a layer and of a model as typed views.
#ifndef INLAY_GEMMA_LIKE_MODEL_WEIGHTS_H_
#define INLAY_GEMMA_LIKE_MODEL_WEIGHTS_H_

#include <tuple>
#include <utility>
#include <vector>

#include "base/rank_share.h"
#include "configs/config.h"
#include "configs/layer.h"
#include "configs/pattern.h"
#include "gemma_like/layers.h"
#include "gemma_like/model/file_rows.h"
#include "gemma_like/model/layer_inputs.h"
#include "gemma_like/token_work.h"
#include "ops/matmul/packed_matrix.h"
#include "ops/views.h"

namespace inlay {

// The Weights of a part of a layer, or the reason why it has none.
template <class P>
struct PartWeights {
  static_assert(HasLayerKind<P>, "a part of a layer needs its LayerKind from gemma_like/layers.h");
  static_assert(!HasLayerKind<P>,
                "the LayerKind of a part lacks a member: gemma_like/layer_kind.h lists them");
  struct Type {};
};
template <EnginePart P>
struct PartWeights<P> {
  using Type = typename LayerKind<P>::Weights;
};
template <>
struct PartWeights<NoMlp> {
  struct Type {};
};
template <>
struct PartWeights<NoInput> {
  struct Type {};
};
template <class P>
using PartWeightsType = typename PartWeights<P>::Type;

// Vectors are copied from the file as float, matrices rearranged for the kernels. Matrices are
// [outputs, inputs].
template <class L>
struct LayerWeights {
  std::vector<float> norm;       // [model_dim], before the mixers; empty where there are none
  std::vector<float> post_norm;  // after them; empty unless the layer's norms are PreAndPostNorm
  ForMixers<L, std::tuple, PartWeightsType> mixers;
  std::vector<float> mlp_norm;  // before and after the MLP, likewise
  std::vector<float> mlp_post_norm;
  PartWeightsType<typename L::Mlp> mlp;
  PartWeightsType<typename L::Input> input;
  std::vector<float> input_post_norm;  // [model_dim], after the input branch, likewise
  std::vector<float> stream_scale;     // [1], if the layer scales the stream; else empty
};

template <ModelConfig Config>
struct ModelWeights {
  FileRows embedding;        // [vocab_size, model_dim]
  LayerInputWeights inputs;  // empty unless the layers have inputs
  PerLayer<Config, LayerWeights> layers;
  std::vector<float> output_norm;  // [model_dim]
  // [vocab_size, model_dim]; of the embedding, if tied. Empty in a model that embeds texts.
  PackedMatrix output;
  // Of a model that embeds texts: [dense_dim, model_dim] and [model_dim, dense_dim], or none.
  std::vector<PackedMatrix> dense;
};

// Calls f.operator()<P>(weights) for the mixers of a layer, then its MLP and its input branch, if
// there are any.
template <class L, class Weights, class F>
void ForEachPartWeights(Weights& w, F&& f) {
  [&]<class... M, size_t... i>(Mixers<M...>, std::index_sequence<i...>) {
    (f.template operator()<M>(std::get<i>(w.mixers)), ...);
  }(typename L::Mixers(), std::make_index_sequence<L::Mixers::kSize>());
  if constexpr (L::kHasMlp) f.template operator()<typename L::Mlp>(w.mlp);
  if constexpr (L::kHasInput) f.template operator()<typename L::Input>(w.input);
}

// What one token of this layer costs a rank.
template <class L>
TokenWork WorkOfLayer(const LayerWeights<L>& w, RankShare share) {
  TokenWork work;
  ForEachPartWeights<L>(
      w, [&]<class P>(const auto& part) { work += LayerKind<P>::Work(part, share); });
  return work;
}

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_MODEL_WEIGHTS_H_
