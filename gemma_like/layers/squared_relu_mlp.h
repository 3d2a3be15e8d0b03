// The MLP with a squared ReLU and without a gate.
#ifndef INLAY_GEMMA_LIKE_LAYERS_SQUARED_RELU_MLP_H_
#define INLAY_GEMMA_LIKE_LAYERS_SQUARED_RELU_MLP_H_

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "configs/layers/squared_relu_mlp.h"
#include "gemma_like/layer_kind.h"
#include "ops/row_ops.h"

namespace inlay {

template <int kHidden>
struct LayerKind<SquaredReluMlp<kHidden>> {
  struct Weights {
    PackedMatrix up;    // [kHidden, model_dim]
    PackedMatrix down;  // [model_dim, kHidden]
  };

  template <class Binder>
  static void Bind(LayerBinder<Binder>& b, Weights& w) {
    w.up = b.Matrix("ffn_up.weight", kHidden, b.model_dim());
    w.down = b.Matrix("ffn_down.weight", b.model_dim(), kHidden, TensorUse::kBranchEnd);
  }

  static OperandForms InputForms(const Weights& w) { return OperandForms::For({&w.up}); }
  static void ListProducts(const Weights& w, Schedule& schedule) {
    schedule.Add({&w.up});
    schedule.Add({&w.down});
  }

  static void Forward(const Weights& w, const Operand& x, FloatRows y, Pass& pass) {
    Arena::Scope scope(pass.arena);
    const FloatRows up = pass.arena.Rows(y.rows, kHidden);
    pass.Multiply(w.up, x, up);
    const Operand activated = pass.MakeOperand(
        up, OperandForms::For({&w.down}),
        [&](size_t begin, size_t end) { SquaredRelu(up.Slice(begin, end - begin)); });
    pass.Multiply(w.down, activated, y);
  }

  static constexpr size_t ScratchFloats(const PassSize& size) {
    return Arena::Floats(size.rows, kHidden) + Pass::OperandFloats(size.rows, kHidden);
  }

  static TokenWork Work(const Weights& w) {
    TokenWork work = WorkOf(w.up);
    work += WorkOf(w.down);
    return work;
  }

  static std::string Describe() { return absl::StrCat("squared relu mlp ", kHidden); }
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_LAYERS_SQUARED_RELU_MLP_H_
