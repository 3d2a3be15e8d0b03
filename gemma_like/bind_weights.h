// Binds a file's tensors to a config's layers.
#ifndef INLAY_GEMMA_LIKE_BIND_WEIGHTS_H_
#define INLAY_GEMMA_LIKE_BIND_WEIGHTS_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "cache/hybrid_cache.h"
#include "configs/config.h"
#include "configs/pattern.h"
#include "gemma_like/weights.h"
#include "ops/ssd.h"
#include "ops/views.h"

namespace inlay {

template <ModelConfig Config>
struct ModelWeights {
  WeightMatrix embedding;  // [vocab_size, model_dim], as the file stores it: few rows are read
  PerLayer<Config, LayerWeights> layers;
  std::vector<float> output_norm;  // [model_dim]
  PackedMatrix output;             // [vocab_size, model_dim]; of the embedding, if tied
};

namespace bind_internal {

// "blk.3.attn_q.weight", and the shapes that a layer's config gives it.
template <ModelConfig Config, class Layer, class Binder>
class LayerBinder {
 public:
  LayerBinder(Binder& binder, int index)
      : binder_(binder), prefix_(absl::StrCat("blk.", index, ".")) {}

  void Bind(LayerWeights<Layer>& w) {
    constexpr bool kPost = Config::kNormPlacement == NormPlacement::kPreAndPost;
    w.norm = Vector("attn_norm.weight", kDim);
    if constexpr (kPost) w.post_norm = Vector("post_attention_norm.weight", kDim);
    BindMixer(w.mixer);
    if constexpr (Layer::Mlp::kKind != MlpKind::kNone) {
      w.mlp_norm = Vector("ffn_norm.weight", kDim);
      if constexpr (kPost) w.mlp_post_norm = Vector("post_ffw_norm.weight", kDim);
      BindMlp(w.mlp);
    }
  }

 private:
  static constexpr size_t kDim = Config::kModelDim;

  void BindMixer(AttentionWeights& w) {
    constexpr AttentionShape kShape = Layer::kShape;
    constexpr size_t kQueryDim = size_t{kShape.heads} * kShape.head_dim;
    constexpr size_t kKvDim = size_t{kShape.kv_heads} * kShape.head_dim;
    w.q = Matrix("attn_q.weight", kQueryDim, kDim);
    w.k = Matrix("attn_k.weight", kKvDim, kDim);
    w.v = Matrix("attn_v.weight", kKvDim, kDim);
    w.output = Matrix("attn_output.weight", kDim, kQueryDim);
    if constexpr (kShape.qk_norm) {
      w.q_norm = Vector("attn_q_norm.weight", kShape.head_dim);
      w.k_norm = Vector("attn_k_norm.weight", kShape.head_dim);
    }
  }

  void BindMixer(Mamba2Weights& w) {
    constexpr SsdShape kShape = SsdShapeOf<Layer>();
    w.in = Matrix("ssm_in.weight", kShape.Inner() + kShape.ConvDim() + kShape.heads, kDim);
    w.conv = binder_.Transposed(Name("ssm_conv1d.weight"), kShape.ConvDim(), kShape.conv_width);
    w.conv_bias = Vector("ssm_conv1d.bias", kShape.ConvDim());
    w.dt_bias = Vector("ssm_dt.bias", kShape.heads);
    w.a = binder_.Vector(Name("ssm_a"), 1, kShape.heads);
    w.d = binder_.Vector(Name("ssm_d"), 1, kShape.heads);
    w.norm = binder_.Vector(Name("ssm_norm.weight"), kShape.Inner() / kShape.groups, kShape.groups);
    w.out = Matrix("ssm_out.weight", kDim, kShape.Inner());
  }

  void BindMlp(GatedMlpWeights& w) { BindGated(w, Layer::Mlp::kHidden, ".weight"); }

  void BindMlp(MoeWeights& w) {
    constexpr MoeShape kShape = Layer::Mlp::kShape;
    w.router = Matrix("ffn_gate_inp.weight", kShape.experts, kDim);
    w.experts.resize(kShape.experts);
    BindExperts(w, &GatedMlpWeights::gate, "ffn_gate_exps.weight", kShape.hidden, kDim);
    BindExperts(w, &GatedMlpWeights::up, "ffn_up_exps.weight", kShape.hidden, kDim);
    BindExperts(w, &GatedMlpWeights::down, "ffn_down_exps.weight", kDim, kShape.hidden);
    if constexpr (kShape.shared_hidden > 0) {
      BindGated(w.shared, kShape.shared_hidden, "_shexp.weight");
    }
  }

  // One tensor holds this matrix of all experts.
  void BindExperts(MoeWeights& w, PackedMatrix GatedMlpWeights::*member, absl::string_view tensor,
                   size_t rows, size_t cols) {
    std::vector<PackedMatrix> all = binder_.Packed(Name(tensor), w.experts.size(), rows, cols);
    for (size_t e = 0; e < all.size(); ++e) w.experts[e].*member = std::move(all[e]);
  }

  void BindGated(GatedMlpWeights& w, size_t hidden, absl::string_view suffix) {
    w.gate = Matrix(absl::StrCat("ffn_gate", suffix), hidden, kDim);
    w.up = Matrix(absl::StrCat("ffn_up", suffix), hidden, kDim);
    w.down = Matrix(absl::StrCat("ffn_down", suffix), kDim, hidden);
  }

  std::string Name(absl::string_view tensor) const { return absl::StrCat(prefix_, tensor); }
  PackedMatrix Matrix(absl::string_view tensor, size_t rows, size_t cols) {
    return binder_.Packed(Name(tensor), rows, cols);
  }
  std::vector<float> Vector(absl::string_view tensor, size_t size) {
    return binder_.Vector(Name(tensor), size);
  }

  Binder& binder_;
  std::string prefix_;
};

}  // namespace bind_internal

// Asks `binder` for every tensor of the config by name and shape. A WeightBinder answers with what
// a file holds; other binders may only take note.
template <ModelConfig Config, class Binder>
void BindWeights(Binder& binder, ModelWeights<Config>& weights) {
  weights.embedding = binder.Matrix("token_embd.weight", Config::kVocabSize, Config::kModelDim);
  // The largest first: while a matrix is packed, it is there twice.
  const bool own_output = !Config::kTiedOutput || binder.Has("output.weight");
  weights.output = binder.Packed(own_output ? "output.weight" : "token_embd.weight",
                                 Config::kVocabSize, Config::kModelDim);
  weights.layers.ForEach([&]<class Layer>(LayerAt at, LayerWeights<Layer>& layer) {
    bind_internal::LayerBinder<Config, Layer, Binder>(binder, at.index).Bind(layer);
  });
  weights.output_norm = binder.Vector("output_norm.weight", Config::kModelDim);
}

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_BIND_WEIGHTS_H_
