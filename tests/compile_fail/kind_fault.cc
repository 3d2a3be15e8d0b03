// A LayerKind that is whole, then one that differs from it by INLAY_FAULT, a member without its
// semicolon that hides the one it should have. See CMakeLists.txt.
#include <cstddef>
#include <string>

#include "configs/layer.h"
#include "gemma_like/layer_kind.h"
#include "gemma_like/model/weights.h"

namespace inlay {

struct Right : MlpPart {};
struct Wrong : MlpPart {};

template <>
struct LayerKind<Right> {
  struct Weights {
    PackedMatrix matrix;
  };
  template <class Binder>
  static void Bind(LayerBinder<Binder>&, Weights&) {}
  static OperandForms InputForms(const Weights& w) { return OperandForms::For({&w.matrix}); }
  static void ListProducts(const Weights& w, Schedule& schedule) { schedule.Add({&w.matrix}); }
  static void Forward(const Weights&, const Operand&, FloatRows, Pass&) {}
  static constexpr size_t ScratchFloats(const PassSize&) { return 0; }
  static TokenWork Work(const Weights&, RankShare) { return {}; }
  static std::string Describe() { return "right"; }
};
PartWeightsType<Right> right;

#if INLAY_COMPILE_FAIL
template <>
struct LayerKind<Wrong> : LayerKind<Right> {
  INLAY_FAULT;
};
PartWeightsType<Wrong> wrong;
#endif

}  // namespace inlay
