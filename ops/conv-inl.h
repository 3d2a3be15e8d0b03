// The inner loop of the causal convolution.

// Compiled once per CPU target, hence the toggling guard.
#if defined(INLAY_OPS_CONV_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INLAY_OPS_CONV_INL_H_
#undef INLAY_OPS_CONV_INL_H_
#else
#define INLAY_OPS_CONV_INL_H_
#endif

#include <cstddef>

#include "ops/simd-inl.h"
#include "ops/views.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

namespace {

// The loops of CausalConv1d. Inlined, so that a width that is a constant at the call is also one in
// the generated code.
template <bool kSilu>
HWY_INLINE void Convolve(const float* const* input, const float* weight, size_t width,
                         const float* bias, FloatRows y) {
  const hn::ScalableTag<float> df;
  const size_t lanes = hn::Lanes(df);
  for (size_t t = 0; t < y.rows; ++t) {
    for (size_t c = 0; c < y.cols; c += lanes) {
      const bool whole = c + lanes <= y.cols;
      const size_t n = y.cols - c;
      auto sum = hn::Zero(df);
      if (bias != nullptr) sum = whole ? hn::LoadU(df, bias + c) : hn::LoadN(df, bias + c, n);
      for (size_t k = 0; k < width; ++k) {
        const float* w = weight + k * y.cols + c;
        const float* x = input[t + k] + c;
        sum = whole ? hn::MulAdd(hn::LoadU(df, w), hn::LoadU(df, x), sum)
                    : hn::MulAdd(hn::LoadN(df, w, n), hn::LoadN(df, x, n), sum);
      }
      if constexpr (kSilu) sum = Swish(df, sum, sum);
      if (whole) {
        hn::StoreU(sum, df, y.Row(t) + c);
      } else {
        hn::StoreN(sum, df, y.Row(t) + c, n);
      }
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#endif  // INLAY_OPS_CONV_INL_H_
