// The gated MLP.
#ifndef INLAY_GEMMA_LIKE_LAYERS_GATED_MLP_H_
#define INLAY_GEMMA_LIKE_LAYERS_GATED_MLP_H_

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "configs/layers/gated_mlp.h"
#include "gemma_like/layer_kind.h"
#include "ops/row_ops.h"

namespace inlay {

// The weights of one gated MLP of any hidden size: the layer's own, or an expert's.
struct GatedWeights {
  PackedMatrix gate;  // [hidden, model_dim]
  PackedMatrix up;    // as gate
  PackedMatrix down;  // [model_dim, hidden]

  // "ffn_gate" + suffix and so on.
  template <class Binder>
  void Bind(LayerBinder<Binder>& b, absl::string_view suffix, size_t hidden, TensorUse end) {
    gate = b.Matrix(absl::StrCat("ffn_gate", suffix), hidden, b.model_dim());
    up = b.Matrix(absl::StrCat("ffn_up", suffix), hidden, b.model_dim());
    down = b.Matrix(absl::StrCat("ffn_down", suffix), b.model_dim(), hidden, end);
  }

  void ListProducts(Schedule& schedule) const {
    schedule.Add({&gate, &up});
    schedule.Add({&down});
  }

  TokenWork Work() const { return WorkOfMlp({&gate, &up}, down); }
};

// gate = activation(gate) * up, as the operand of products with `down`. Of the hidden elements this
// rank has those that its rows of the matrix `w` give; the others are gathered.
template <Activation kActivation>
Operand ActivateForDown(const PackedMatrix& w, FloatRows gate, ConstFloatRows up,
                        const PackedMatrix& down, Pass& pass) {
  return pass.MakeOperandOfParts(
      gate, RankSplit(), OperandForms::For({&down}), [&](size_t begin, size_t end) {
        const FloatRows g = OwnColumns(w, gate.Slice(begin, end - begin));
        const ConstFloatRows u = OwnColumns(w, up.Slice(begin, end - begin));
        if constexpr (kActivation == Activation::kGeluTanh) {
          GeluTanhGate(g, u, g);
        } else {
          SiluGate(g, u, g);
        }
      });
}

// y [rows, model_dim] = down(activation(gate x) * up x).
template <Activation kActivation>
void GatedForward(const GatedWeights& weights, const Operand& x, FloatRows y, Pass& pass) {
  Arena::Scope scope(pass.arena);
  FloatRows gate = pass.arena.Rows(y.rows, weights.gate.whole_rows());
  FloatRows up = pass.arena.Rows(y.rows, weights.gate.whole_rows());
  const MatMulTask products[] = {{&weights.gate, OwnColumns(weights.gate, gate)},
                                 {&weights.up, OwnColumns(weights.up, up)}};
  pass.MultiplyOwn(products, x);
  const Operand activated =
      ActivateForDown<kActivation>(weights.gate, gate, up, weights.down, pass);
  pass.Multiply(weights.down, activated, y);
}

constexpr size_t GatedScratchFloats(size_t rows, size_t hidden) {
  return 2 * Arena::Floats(rows, hidden) + Pass::OperandFloats(rows, hidden);
}

template <int kHidden, Activation kActivation>
struct LayerKind<GatedMlp<kHidden, kActivation>> {
  using Weights = GatedWeights;

  template <class Binder>
  static void Bind(LayerBinder<Binder>& b, Weights& w) {
    w.Bind(b, ".weight", kHidden, TensorUse::kBranchEnd);
  }

  static OperandForms InputForms(const Weights& w) { return OperandForms::For({&w.gate, &w.up}); }
  static void ListProducts(const Weights& w, Schedule& schedule) { w.ListProducts(schedule); }

  static void Forward(const Weights& w, const Operand& x, FloatRows y, Pass& pass) {
    GatedForward<kActivation>(w, x, y, pass);
  }

  static constexpr size_t ScratchFloats(const PassSize& size) {
    return GatedScratchFloats(size.rows, kHidden);
  }
  static TokenWork Work(const Weights& w, RankShare) { return w.Work(); }
  static std::string Describe() { return absl::StrCat("gated mlp ", kHidden); }
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_LAYERS_GATED_MLP_H_
