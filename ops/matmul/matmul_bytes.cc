#include "ops/cpu/extension.h"
// Products of bytes gain from AVX3_DL, and nothing more from AVX3_ZEN4.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS INLAY_DISABLED_TARGETS(INLAY_UNUSED_TARGETS | HWY_AVX3_ZEN4)

#include <cassert>

#include "ops/matmul/matmul_tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/matmul/matmul_bytes.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"
#include "ops/matmul/matmul_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {
namespace {

#if INLAY_IS_COMPILED
void MultiplyBytes(const MatMulTask& task, const QuantizedRows& x, size_t begin, size_t end) {
  switch (task.w->format()) {
    case PackedFormat::kBytes32:
      return MultiplyQuantized<Bytes32>(task, x, begin, end);
    default:
      assert(false);
  }
}
#else
void MultiplyBytes(const MatMulTask&, const QuantizedRows&, size_t, size_t) { assert(false); }
#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace inlay::INLAY_EXTENSION {
namespace {

HWY_EXPORT(MultiplyBytes);

}  // namespace

MultiplyTilesOf<QuantizedRows> ByteTiles() { return HWY_DYNAMIC_POINTER(MultiplyBytes); }

}  // namespace inlay::INLAY_EXTENSION
#endif  // HWY_ONCE
