// The MLP with a squared ReLU and without a gate.
#ifndef INLAY_GEMMA_LIKE_LAYERS_SQUARED_RELU_MLP_H_
#define INLAY_GEMMA_LIKE_LAYERS_SQUARED_RELU_MLP_H_

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "configs/layers/squared_relu_mlp.h"
#include "gemma_like/layer_kind.h"
#include "ops/row_ops.h"

namespace inlay {

// The weights of one such MLP of any hidden size: the layer's own, or an expert's.
struct SquaredReluWeights {
  PackedMatrix up;    // [hidden, model_dim]
  PackedMatrix down;  // [model_dim, hidden]

  // "ffn_up" + suffix and so on.
  template <class Binder>
  void Bind(LayerBinder<Binder>& b, absl::string_view suffix, size_t hidden, TensorUse end) {
    up = b.Matrix(absl::StrCat("ffn_up", suffix), hidden, b.model_dim());
    down = b.Matrix(absl::StrCat("ffn_down", suffix), b.model_dim(), hidden, end);
  }

  void ListProducts(Schedule& schedule) const {
    schedule.Add({&up});
    schedule.Add({&down});
  }

  TokenWork Work() const { return WorkOfMlp({&up}, down); }
};

// up = max(up, 0)^2, as the operand of products with `down`. Of the hidden elements this rank has
// those that its rows of w.up give; the others are gathered.
inline Operand SquaredReluForDown(const SquaredReluWeights& w, FloatRows up, Pass& pass) {
  return pass.MakeOperandOfParts(up, RankSplit(), OperandForms::For({&w.down}),
                                 [&](size_t begin, size_t end) {
                                   SquaredRelu(OwnColumns(w.up, up.Slice(begin, end - begin)));
                                 });
}

// y [rows, model_dim] = down(max(up x, 0)^2).
inline void SquaredReluForward(const SquaredReluWeights& weights, const Operand& x, FloatRows y,
                               Pass& pass) {
  Arena::Scope scope(pass.arena);
  const FloatRows up = pass.arena.Rows(y.rows, weights.up.whole_rows());
  const MatMulTask product{&weights.up, OwnColumns(weights.up, up)};
  pass.MultiplyOwn({&product, 1}, x);
  const Operand activated = SquaredReluForDown(weights, up, pass);
  pass.Multiply(weights.down, activated, y);
}

constexpr size_t SquaredReluScratchFloats(size_t rows, size_t hidden) {
  return Arena::Floats(rows, hidden) + Pass::OperandFloats(rows, hidden);
}

template <int kHidden>
struct LayerKind<SquaredReluMlp<kHidden>> {
  using Weights = SquaredReluWeights;

  template <class Binder>
  static void Bind(LayerBinder<Binder>& b, Weights& w) {
    w.Bind(b, ".weight", kHidden, TensorUse::kBranchEnd);
  }

  static OperandForms InputForms(const Weights& w) { return OperandForms::For({&w.up}); }
  static void ListProducts(const Weights& w, Schedule& schedule) { w.ListProducts(schedule); }

  static void Forward(const Weights& w, const Operand& x, FloatRows y, Pass& pass) {
    SquaredReluForward(w, x, y, pass);
  }

  static constexpr size_t ScratchFloats(const PassSize& size) {
    return SquaredReluScratchFloats(size.rows, kHidden);
  }
  static TokenWork Work(const Weights& w, RankShare) { return w.Work(); }
  static std::string Describe() { return absl::StrCat("squared relu mlp ", kHidden); }
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_LAYERS_SQUARED_RELU_MLP_H_
