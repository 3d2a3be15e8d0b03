// The forward pass of one layer, a fold over its parts.
#ifndef INLAY_GEMMA_LIKE_MODEL_BLOCK_H_
#define INLAY_GEMMA_LIKE_MODEL_BLOCK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "cache/hybrid_cache.h"
#include "configs/config.h"
#include "configs/layer.h"
#include "configs/pattern.h"
#include "gemma_like/layer_kind.h"
#include "gemma_like/model/arena.h"
#include "gemma_like/model/weights.h"
#include "ops/row_ops.h"
#include "ops/team.h"
#include "ops/views.h"

namespace inlay {

// What all layers with this mixer share in a pass.
template <class M>
struct SharedOf {
  typename LayerKind<M>::Shared value;
};

namespace block_internal {

template <class L>
using MixerList = ForMixers<L, LayerList, std::type_identity_t>;

template <class Layers>
struct MixersOf;
template <class... L>
struct MixersOf<LayerList<L...>> {
  using Distinct = DistinctLayers<Chain<MixerList<L>...>>;
};

template <class List>
struct SharedTuple;
template <class... M>
struct SharedTuple<LayerList<M...>> {
  using Type = std::tuple<SharedOf<M>...>;
};

}  // namespace block_internal

// One SharedOf<M> for each distinct mixer of the config.
template <ModelConfig Config>
using SharedByMixer = typename block_internal::SharedTuple<
    typename block_internal::MixersOf<typename Config::Layers>::Distinct>::Type;

// The state of a forward pass between two layers.
template <ModelConfig Config>
struct PassState {
  FloatRows residual;  // [rows, model_dim], the residual stream
  FloatRows inputs;    // [rows, layers * kLayerInputDim], the layers' inputs; or empty
  absl::InlinedVector<HybridCache<Config>*, 8> caches;
  absl::InlinedVector<SegmentRows, 8> segments;  // of the cache at the same index
  SharedByMixer<Config> shared;
  Pass pass;
};

// residual += sum over the mixers of multiplier * mixer(norm(residual)), then
// residual += multiplier * mlp(norm(residual)), then residual += input branch(residual, input),
// then, if the layer scales the stream, residual *= scale.
template <ModelConfig Config, class L>
struct Block {
  static constexpr size_t kMixers = L::Mixers::kSize;
  static_assert(kMixers <= 1 || !L::Norms::kPost,
                "a layer with norms after its branches has at most one mixer");
  static_assert(L::kHasMlp || (!L::Norms::kScalesStream && !L::kHasInput),
                "a layer with an input or a scale must have an MLP");

  // With `out_rows` [outputs], only those rows of the batch stay in the residual stream, and the
  // state's residual then has `outputs` rows; with nullptr, all rows stay.
  static void Forward(const LayerWeights<L>& weights, LayerAt at, const int32_t* out_rows,
                      size_t outputs, PassState<Config>& s) {
    Arena::Scope scope(s.pass.arena);
    FloatRows branch = s.pass.arena.Rows(outputs, Config::kModelDim);
    if constexpr (kMixers > 0) RunMixers(weights, at.ordinal, out_rows, branch, s);
    if constexpr (L::kHasMlp) {
      if (s.residual.rows == 0) return;
      RunMlp(weights, branch, s);
    }
    if constexpr (L::kHasInput) RunInput(weights, at.index, branch, s);
  }

  // Floats of the arena that Forward needs at most.
  static constexpr size_t ScratchFloats(const PassSize& size) {
    size_t part = 0;
    ForEachPart<L>([&]<class P>() { part = std::max(part, LayerKind<P>::ScratchFloats(size)); });
    return 2 * Arena::Floats(size.rows, Config::kModelDim) +
           Pass::OperandFloats(size.rows, Config::kModelDim) + part;
  }

 private:
  // Adds the last mixer's branch and computes the MLP's. Adds that too, unless an input branch
  // follows: RunInput does so in the loop that makes its operand.
  static void RunMlp(const LayerWeights<L>& weights, FloatRows branch, PassState<Config>& s) {
    Arena::Scope scope(s.pass.arena);
    const FloatRows normed = s.pass.arena.Rows(branch.rows, Config::kModelDim);
    const Operand x = s.pass.MakeOperand(
        normed, LayerKind<typename L::Mlp>::InputForms(weights.mlp), [&](size_t begin, size_t end) {
          if constexpr (kMixers > 0) AddMixer<kMixers - 1>(weights, branch, begin, end, s);
          RmsNorm(s.residual.Slice(begin, end - begin), weights.mlp_norm.data(),
                  Config::kNormEpsilon, normed.Slice(begin, end - begin));
        });
    if constexpr (requires { L::Mlp::kReadsStream; }) {
      LayerKind<typename L::Mlp>::Forward(weights.mlp, x, s.residual, branch, s.pass);
    } else {
      LayerKind<typename L::Mlp>::Forward(weights.mlp, x, branch, s.pass);
    }
    if constexpr (!L::kHasInput) {
      ForRows(s.pass.team, branch.rows, 2 * Config::kModelDim, [&](size_t begin, size_t end) {
        AddMlp(weights, branch, begin, end, s);
        ScaleStream(weights, s.residual.Slice(begin, end - begin));
      });
    }
  }

  // Adds the MLP's branch, then computes the input branch and adds it.
  static void RunInput(const LayerWeights<L>& weights, int index, FloatRows branch,
                       PassState<Config>& s) {
    constexpr size_t kDim = kLayerInputDim<Config>;
    const Operand x = s.pass.MakeOperand(
        s.residual, LayerKind<typename L::Input>::InputForms(weights.input),
        [&](size_t begin, size_t end) { AddMlp(weights, branch, begin, end, s); });
    LayerKind<typename L::Input>::Forward(weights.input, x,
                                          s.inputs.Columns(static_cast<size_t>(index) * kDim, kDim),
                                          branch, s.pass);
    ForRows(s.pass.team, branch.rows, 2 * Config::kModelDim, [&](size_t begin, size_t end) {
      const FloatRows residual = s.residual.Slice(begin, end - begin);
      AddBranch(weights.input_post_norm, 1, branch.Slice(begin, end - begin), residual);
      ScaleStream(weights, residual);
    });
  }

  // residual += the MLP's branch, for rows [begin, end).
  static void AddMlp(const LayerWeights<L>& weights, FloatRows branch, size_t begin, size_t end,
                     PassState<Config>& s) {
    AddBranch(weights.mlp_post_norm, L::kMlpMultiplier, branch.Slice(begin, end - begin),
              s.residual.Slice(begin, end - begin));
  }

  static void ScaleStream(const LayerWeights<L>& weights, FloatRows residual) {
    if constexpr (L::Norms::kScalesStream) Scale(weights.stream_scale.front(), residual);
  }

  // Computes all mixers and adds their branches, except the last one before an MLP: Forward adds
  // that in the same loop as the MLP's norm.
  static void RunMixers(const LayerWeights<L>& weights, int ordinal, const int32_t* out_rows,
                        FloatRows branch, PassState<Config>& s) {
    Arena::Scope scope(s.pass.arena);
    const FloatRows normed = s.pass.arena.Rows(s.residual.rows, Config::kModelDim);
    const Operand x =
        s.pass.MakeOperand(normed, InputForms(weights), [&](size_t begin, size_t end) {
          RmsNorm(s.residual.Slice(begin, end - begin), weights.norm.data(), Config::kNormEpsilon,
                  normed.Slice(begin, end - begin));
        });
    if (out_rows != nullptr) {
      for (size_t r = 0; r < branch.rows; ++r) {  // out_rows[r] >= r: no row is lost
        std::copy_n(s.residual.Row(static_cast<size_t>(out_rows[r])), Config::kModelDim,
                    s.residual.data + r * s.residual.stride);
      }
      s.residual = s.residual.Slice(0, branch.rows);
    }
    [&]<size_t... i>(std::index_sequence<i...>) {
      (RunMixer<i>(weights, ordinal, out_rows, x, branch, s), ...);
    }
    (std::make_index_sequence<kMixers>());
  }

  static OperandForms InputForms(const LayerWeights<L>& weights) {
    return [&]<class... M>(Mixers<M...>) {
      return std::apply(
          [](const auto&... w) { return (OperandForms() | ... | LayerKind<M>::InputForms(w)); },
          weights.mixers);
    }(typename L::Mixers());
  }

  // The i-th mixer; adds its branch unless it is the last before an MLP.
  template <size_t i>
  static void RunMixer(const LayerWeights<L>& weights, int ordinal, const int32_t* out_rows,
                       const Operand& x, FloatRows branch, PassState<Config>& s) {
    using M = std::tuple_element_t<i, ForMixers<L, std::tuple, std::type_identity_t>>;
    using Storage =
        std::remove_reference_t<decltype(s.caches.front()->template StorageOf<L, i>(ordinal))>;
    absl::InlinedVector<Segment<Storage>, 8> segments;
    for (size_t c = 0; c < s.caches.size(); ++c) {
      segments.push_back({s.segments[c], &s.caches[c]->template StorageOf<L, i>(ordinal)});
    }
    LayerKind<M>::Forward(std::get<i>(weights.mixers), std::get<SharedOf<M>>(s.shared).value,
                          {segments, out_rows}, x, branch, s.pass);
    if constexpr (!L::kHasMlp || i + 1 < kMixers) {
      ForRows(s.pass.team, branch.rows, 2 * Config::kModelDim,
              [&](size_t begin, size_t end) { AddMixer<i>(weights, branch, begin, end, s); });
    }
  }

  // residual += the i-th mixer's branch, for rows [begin, end).
  template <size_t i>
  static void AddMixer(const LayerWeights<L>& weights, FloatRows branch, size_t begin, size_t end,
                       PassState<Config>& s) {
    AddBranch(weights.post_norm, L::kMixerMultipliers[i], branch.Slice(begin, end - begin),
              s.residual.Slice(begin, end - begin));
  }

  static void AddBranch(const std::vector<float>& post_norm, float multiplier, FloatRows branch,
                        FloatRows residual) {
    if constexpr (L::Norms::kPost) {
      RmsNorm(branch, post_norm.data(), Config::kNormEpsilon, branch);
    }
    AddScaled(branch, multiplier, residual);
  }
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_MODEL_BLOCK_H_
