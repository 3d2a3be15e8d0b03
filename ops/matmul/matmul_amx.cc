#define INLAY_AMX
#include "ops/cpu/extension.h"
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS INLAY_DISABLED_TARGETS(INLAY_UNUSED_TARGETS)

#include <cassert>

#include "ops/matmul/matmul_amx_bf16.h"
#include "ops/matmul/matmul_tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/matmul/matmul_amx.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"
#include "ops/matmul/matmul_amx-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {
namespace {

#if INLAY_IS_COMPILED
void MultiplyQuantized(const MatMulTask& task, const QuantizedRows& x, size_t begin, size_t end) {
  MultiplyByAmx<AmxTiles>(task, x, begin, end);
}
#else
void MultiplyQuantized(const MatMulTask&, const QuantizedRows&, size_t, size_t) { assert(false); }
#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace inlay::INLAY_EXTENSION {
namespace {

HWY_EXPORT(MultiplyQuantized);

#ifdef __x86_64__
void MultiplyBf16(const MatMulTask& task, const Bf16Rows& x, size_t begin, size_t end) {
  AmxBf16Kernel<AmxTiles>::Run(task, x, begin, end);
}
#else
void MultiplyBf16(const MatMulTask&, const Bf16Rows&, size_t, size_t) { assert(false); }
#endif

}  // namespace

MultiplyTilesOf<Bf16Rows> Bf16Tiles() { return MultiplyBf16; }

MultiplyTilesOf<QuantizedRows> QuantizedTiles() { return HWY_DYNAMIC_POINTER(MultiplyQuantized); }

}  // namespace inlay::INLAY_EXTENSION
#endif  // HWY_ONCE
