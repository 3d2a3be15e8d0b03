// Binds a file's tensors to a config's layers.
#ifndef INLAY_GEMMA_LIKE_MODEL_BIND_WEIGHTS_H_
#define INLAY_GEMMA_LIKE_MODEL_BIND_WEIGHTS_H_

#include <cstddef>

#include "absl/strings/string_view.h"
#include "configs/config.h"
#include "configs/pattern.h"
#include "gemma_like/model/layer_binder.h"
#include "gemma_like/model/tensor_use.h"
#include "gemma_like/model/weights.h"
#include "gemma_like/strings.h"

namespace inlay {

// Binds the tensors of one layer: norms here, those of mixers and MLP in their LayerKind.
template <class L, class Binder>
void BindLayer(LayerBinder<Binder>& b, LayerWeights<L>& w) {
  const auto norm = [&](absl::string_view tensor, TensorUse use = TensorUse::kNorm) {
    return b.Vector(tensor, use, b.model_dim());
  };
  constexpr bool kPost = L::Norms::kPost;
  constexpr bool kMixes = L::Mixers::kSize > 0;
  if constexpr (kMixes) w.norm = norm("attn_norm.weight");
  if constexpr (kMixes && kPost) {
    w.post_norm = norm("post_attention_norm.weight", TensorUse::kPostNorm);
  }
  ForEachPartWeights<L>(w, [&]<class P>(auto& part) {
    if constexpr (Mlp<P>) {
      // Files name a layer's only norm attn_norm, even where it precedes the MLP.
      w.mlp_norm = norm(kMixes ? ToAbsl(L::Norms::kMlpNormTensor) : "attn_norm.weight");
      if constexpr (kPost) w.mlp_post_norm = norm("post_ffw_norm.weight", TensorUse::kPostNorm);
    }
    LayerKind<P>::Bind(b, part);
    if constexpr (LayerInput<P> && kPost) {
      w.input_post_norm = norm("post_norm.weight", TensorUse::kPostNorm);
    }
  });
  if constexpr (L::Norms::kScalesStream) {
    w.stream_scale = b.OptionalVector("layer_output_scale.weight", TensorUse::kNorm, 1, 1.0f);
  }
}

// Binds the matrices that some files apply to the pooled vector.
template <ModelConfig Config, class Binder>
void BindDense(Binder& binder, ModelWeights<Config>& weights) {
  constexpr size_t kDense = Config::kEmbedding.dense_dim;
  if (kDense == 0 || !(binder.Has("dense_2.weight") || binder.Has("dense_3.weight"))) return;
  weights.dense.push_back(
      binder.Packed("dense_2.weight", kDense, Config::kModelDim, TensorUse::kMatrix));
  weights.dense.push_back(
      binder.Packed("dense_3.weight", Config::kModelDim, kDense, TensorUse::kMatrix));
}

// Asks `binder` for every tensor of the config by name and shape. A WeightBinder answers with what
// a file holds; other binders may only record the requests.
template <ModelConfig Config, class Binder>
void BindWeights(Binder& binder, ModelWeights<Config>& weights) {
  const size_t vocab_size = binder.Rows("token_embd.weight", Config::kVocabSize);
  weights.embedding =
      binder.InFile("token_embd.weight", vocab_size, Config::kModelDim, TensorUse::kEmbedding);
  if constexpr (EmbedsTexts<Config>()) {
    BindDense<Config>(binder, weights);
  } else {
    // The largest matrix first: while it is packed, it is in memory twice. Fine-tunes may be saved
    // without the matrix of their own that the config has; a binder without a file has no tensor.
    const bool own_output =
        binder.Has("output.weight") || (!Config::kTiedOutput && !binder.Has("token_embd.weight"));
    weights.output =
        binder.Packed(own_output ? "output.weight" : "token_embd.weight", vocab_size,
                      Config::kModelDim, own_output ? TensorUse::kMatrix : TensorUse::kEmbedding);
  }
  constexpr size_t kInputDim = kLayerInputDim<Config>;
  if constexpr (kInputDim > 0) {
    weights.inputs.Bind(binder, vocab_size, Config::kModelDim, Config::Layers::kSize, kInputDim);
  }
  weights.layers.ForEach([&]<class L>(LayerAt at, LayerWeights<L>& layer) {
    LayerBinder<Binder> of_layer(binder, at.index, Config::kModelDim);
    BindLayer<L>(of_layer, layer);
  });
  weights.output_norm =
      binder.Vector(ToAbsl(Config::kOutputNormTensor), TensorUse::kNorm, Config::kModelDim);
}

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_MODEL_BIND_WEIGHTS_H_
