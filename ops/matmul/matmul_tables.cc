#include "ops/cpu/extension.h"
// Products of bytes gain from AVX3_DL, and nothing more from AVX3_ZEN4.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS INLAY_DISABLED_TARGETS(INLAY_UNUSED_TARGETS | HWY_AVX3_ZEN4)

#include <cassert>

#include "ops/matmul/matmul_tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/matmul/matmul_tables.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"
#include "ops/matmul/matmul_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {
namespace {

#if INLAY_IS_COMPILED
void MultiplyTables(const MatMulTask& task, const QuantizedRows& x, size_t begin, size_t end) {
  switch (task.w->format()) {
    case PackedFormat::kTableIq4Nl:
      return MultiplyQuantized<TableIq4Nl>(task, x, begin, end);
    case PackedFormat::kTableMxfp4:
      return MultiplyQuantized<TableMxfp4>(task, x, begin, end);
    case PackedFormat::kTableIq4Xs:
      return MultiplyQuantized<TableIq4Xs>(task, x, begin, end);
    case PackedFormat::kTableIq3Xxs:
      return MultiplyQuantized<TableIq3Xxs>(task, x, begin, end);
    case PackedFormat::kTableIq3S:
      return MultiplyQuantized<TableIq3S>(task, x, begin, end);
    case PackedFormat::kTableIq2S:
      return MultiplyQuantized<TableIq2S>(task, x, begin, end);
    case PackedFormat::kTableIq2Xxs:
      return MultiplyQuantized<TableIq2Xxs>(task, x, begin, end);
    case PackedFormat::kTwosK:
      return MultiplyQuantized<TwosK>(task, x, begin, end);
    case PackedFormat::kThreesK:
      return MultiplyQuantized<ThreesK>(task, x, begin, end);
    default:
      assert(false);
  }
}
#else
void MultiplyTables(const MatMulTask&, const QuantizedRows&, size_t, size_t) { assert(false); }
#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace inlay::INLAY_EXTENSION {
namespace {

HWY_EXPORT(MultiplyTables);

}  // namespace

MultiplyTilesOf<QuantizedRows> TableTiles() { return HWY_DYNAMIC_POINTER(MultiplyTables); }

}  // namespace inlay::INLAY_EXTENSION
#endif  // HWY_ONCE
