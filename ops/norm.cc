#include "ops/norm.h"

#include <cassert>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/norm.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"
#include "ops/norm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {

void NormRow(const float* x, const float* weight, float epsilon, size_t n, float* y) {
  NormalizeRow(x, weight, epsilon, n, y);
}

}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace inlay {
namespace {
HWY_EXPORT(NormRow);
}  // namespace

void RmsNorm(ConstFloatRows x, const float* weight, float epsilon, FloatRows y) {
  assert(x.rows == y.rows && x.cols == y.cols);
  const auto norm_row = HWY_DYNAMIC_POINTER(NormRow);
  for (size_t r = 0; r < x.rows; ++r) norm_row(x.Row(r), weight, epsilon, x.cols, y.Row(r));
}

}  // namespace inlay
#endif  // HWY_ONCE
