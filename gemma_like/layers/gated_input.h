// The branch for the input that a layer has of its own.
#ifndef INLAY_GEMMA_LIKE_LAYERS_GATED_INPUT_H_
#define INLAY_GEMMA_LIKE_LAYERS_GATED_INPUT_H_

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "configs/layers/gated_input.h"
#include "gemma_like/layer_kind.h"
#include "gemma_like/layers/gated_mlp.h"

namespace inlay {

template <int kDim, Activation kActivation>
struct LayerKind<GatedInput<kDim, kActivation>> {
  struct Weights {
    PackedMatrix gate;  // [kDim, model_dim]
    PackedMatrix out;   // [model_dim, kDim]
  };

  template <class Binder>
  static void Bind(LayerBinder<Binder>& b, Weights& w) {
    w.gate = b.Matrix("inp_gate.weight", kDim, b.model_dim());
    w.out = b.Matrix("proj.weight", b.model_dim(), kDim, TensorUse::kBranchEnd);
  }

  static OperandForms InputForms(const Weights& w) { return OperandForms::For({&w.gate}); }
  static void ListProducts(const Weights& w, Schedule& schedule) {
    schedule.Add({&w.gate});
    schedule.Add({&w.out});
  }

  // `input` is [rows, kDim].
  static void Forward(const Weights& w, const Operand& x, ConstFloatRows input, FloatRows y,
                      Pass& pass) {
    Arena::Scope scope(pass.arena);
    const FloatRows gate = pass.arena.Rows(y.rows, kDim);
    const MatMulTask product{&w.gate, OwnColumns(w.gate, gate)};
    pass.MultiplyOwn({&product, 1}, x);
    const Operand gated = ActivateForDown<kActivation>(w.gate, gate, input, w.out, pass);
    pass.Multiply(w.out, gated, y);
  }

  static constexpr size_t ScratchFloats(const PassSize& size) {
    return Arena::Floats(size.rows, kDim) + Pass::OperandFloats(size.rows, kDim);
  }
  static TokenWork Work(const Weights& w, RankShare) { return WorkOfMlp({&w.gate}, w.out); }
  static std::string Describe() { return absl::StrCat("layer input ", kDim); }
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_LAYERS_GATED_INPUT_H_
