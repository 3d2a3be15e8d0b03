#include "ops/conv.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/conv.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"
#include "ops/conv-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {
namespace {

void ConvolveRows(const CausalConv& conv, const float* const* input, FloatRows y) {
  if (conv.silu) {
    Convolve<true>(input, conv.weight, conv.width, conv.bias, y);
  } else {
    Convolve<false>(input, conv.weight, conv.width, conv.bias, y);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace inlay {
namespace {

HWY_EXPORT(ConvolveRows);

}  // namespace

void CausalConv1d(const CausalConv& conv, const float* const* input, FloatRows y) {
  HWY_DYNAMIC_DISPATCH(ConvolveRows)(conv, input, y);
}

}  // namespace inlay
#endif  // HWY_ONCE
