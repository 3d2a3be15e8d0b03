// The MLP that one expert of a mixture is: gated, or with a squared ReLU and without a gate.
#ifndef INLAY_GEMMA_LIKE_LAYERS_EXPERT_MLP_H_
#define INLAY_GEMMA_LIKE_LAYERS_EXPERT_MLP_H_

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "configs/layers/gated_mlp.h"
#include "gemma_like/layer_kind.h"
#include "gemma_like/layers/gated_mlp.h"
#include "gemma_like/layers/squared_relu_mlp.h"

namespace inlay {

// ExpertMlp<activation> has
//   Weights
//       with Bind, ListProducts and Work, as GatedWeights;
//   kInputs, Inputs(w)
//       the matrices that are multiplied with the MLP's input;
//   BindAll(b, experts, width, hidden, use)
//       the weights of all experts, of each matrix one tensor; an expert's input and output have
//       `width` elements, and `use` is that of the outputs' matrices;
//   Activate(w, hidden, pass)
//       the products of Inputs, in `hidden`, as the operand of products with the output's matrix;
//       w is any expert;
//   Forward(w, x, y, pass), ScratchFloats(rows, hidden)
//       one MLP, as of a layer.
template <Activation kActivation>
struct ExpertMlp {
  using Weights = GatedWeights;
  static constexpr size_t kInputs = 2;

  static std::array<const PackedMatrix*, kInputs> Inputs(const Weights& w) {
    return {&w.gate, &w.up};
  }

  template <class Binder>
  static std::vector<Weights> BindAll(LayerBinder<Binder>& b, size_t experts, size_t width,
                                      size_t hidden, TensorUse use) {
    std::vector<std::vector<PackedMatrix>> gate_up =
        b.Stacked("ffn_gate_up_exps.weight", experts,
                  {{"ffn_gate_exps.weight", hidden}, {"ffn_up_exps.weight", hidden}}, width);
    std::vector<PackedMatrix> down =
        b.Matrices("ffn_down_exps.weight", experts, width, hidden, use);
    std::vector<Weights> weights(experts);
    for (size_t e = 0; e < experts; ++e) {
      weights[e] = {.gate = std::move(gate_up[0][e]),
                    .up = std::move(gate_up[1][e]),
                    .down = std::move(down[e])};
    }
    return weights;
  }

  static Operand Activate(const Weights& w, const std::array<FloatRows, kInputs>& hidden,
                          Pass& pass) {
    return ActivateForDown<kActivation>(w.gate, hidden[0], hidden[1], w.down, pass);
  }

  static void Forward(const Weights& w, const Operand& x, FloatRows y, Pass& pass) {
    GatedForward<kActivation>(w, x, y, pass);
  }
  static constexpr size_t ScratchFloats(size_t rows, size_t hidden) {
    return GatedScratchFloats(rows, hidden);
  }
};

template <>
struct ExpertMlp<Activation::kSquaredRelu> {
  using Weights = SquaredReluWeights;
  static constexpr size_t kInputs = 1;

  static std::array<const PackedMatrix*, kInputs> Inputs(const Weights& w) { return {&w.up}; }

  template <class Binder>
  static std::vector<Weights> BindAll(LayerBinder<Binder>& b, size_t experts, size_t width,
                                      size_t hidden, TensorUse use) {
    std::vector<PackedMatrix> up = b.Matrices("ffn_up_exps.weight", experts, hidden, width);
    std::vector<PackedMatrix> down =
        b.Matrices("ffn_down_exps.weight", experts, width, hidden, use);
    std::vector<Weights> weights(experts);
    for (size_t e = 0; e < experts; ++e) {
      weights[e] = {.up = std::move(up[e]), .down = std::move(down[e])};
    }
    return weights;
  }

  static Operand Activate(const Weights& w, const std::array<FloatRows, kInputs>& hidden,
                          Pass& pass) {
    return SquaredReluForDown(w, hidden[0], pass);
  }

  static void Forward(const Weights& w, const Operand& x, FloatRows y, Pass& pass) {
    SquaredReluForward(w, x, y, pass);
  }
  static constexpr size_t ScratchFloats(size_t rows, size_t hidden) {
    return SquaredReluScratchFloats(rows, hidden);
  }
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_LAYERS_EXPERT_MLP_H_
