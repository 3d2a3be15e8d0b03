#include <cassert>

#include "ops/matmul/matmul_tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/matmul/matmul_floats.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"
#include "ops/matmul/matmul_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {
namespace {

void MultiplyFloats(const MatMulTask& task, const ConstFloatRows& x, size_t begin, size_t end) {
  if (task.w->format() == PackedFormat::kF32) {
    Multiply<FloatKernel<float>>(task, x, begin, end);
  } else {
    assert(task.w->format() == PackedFormat::kF16);
    Multiply<FloatKernel<hwy::float16_t>>(task, x, begin, end);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace inlay::plain {
namespace {

HWY_EXPORT(MultiplyFloats);

}  // namespace

MultiplyTilesOf<ConstFloatRows> FloatTiles() { return HWY_DYNAMIC_POINTER(MultiplyFloats); }

}  // namespace inlay::plain
#endif  // HWY_ONCE
