#include "ops/dequantize.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/dequantize.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"
#include "ops/quant_unpack.h"
#include "ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {

void ConvertWeights(const WeightMatrix& w, size_t row, float* out) {
  const void* from = w.RowData(row);
  switch (w.type) {
    case WeightType::kF32:
      return ConvertRow(static_cast<const float*>(from), w.cols, out);
    case WeightType::kF16:
      return ConvertRow(static_cast<const hwy::float16_t*>(from), w.cols, out);
    case WeightType::kBF16:
      return ConvertRow(static_cast<const hwy::bfloat16_t*>(from), w.cols, out);
    default:
      return DequantizeBlocks(w.type, from, w.cols, out);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace inlay {

HWY_EXPORT(ConvertWeights);

void DequantizeRow(const WeightMatrix& w, size_t row, float* out) {
  HWY_DYNAMIC_DISPATCH(ConvertWeights)(w, row, out);
}

}  // namespace inlay
#endif  // HWY_ONCE
