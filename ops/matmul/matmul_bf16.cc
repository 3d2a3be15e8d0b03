#include "ops/cpu/extension.h"
// Products of bfloat16 gain from AVX3_ZEN4, and nothing from AVX3_DL.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS INLAY_DISABLED_TARGETS(INLAY_UNUSED_TARGETS | HWY_AVX3_DL)

#include <cassert>

#include "ops/cpu/float_environment.h"
#include "ops/matmul/matmul_tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/matmul/matmul_bf16.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"
#include "ops/matmul/matmul_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {
namespace {

#if INLAY_IS_COMPILED
void MultiplyBf16(const MatMulTask& task, const Bf16Rows& x, size_t begin, size_t end) {
#if HWY_TARGET == HWY_AVX3
  const SubnormalsAreZero as_on_amx;
#endif
  Multiply<PairKernel>(task, x, begin, end);
}
#else
void MultiplyBf16(const MatMulTask&, const Bf16Rows&, size_t, size_t) { assert(false); }
#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace inlay::INLAY_EXTENSION {
namespace {

HWY_EXPORT(MultiplyBf16);

}  // namespace

MultiplyTilesOf<Bf16Rows> Bf16Tiles() { return HWY_DYNAMIC_POINTER(MultiplyBf16); }

}  // namespace inlay::INLAY_EXTENSION
#endif  // HWY_ONCE
