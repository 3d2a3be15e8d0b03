// The inner loops of root-mean-square normalisation.

// Compiled once per CPU target, hence the toggling guard.
#if defined(INLAY_OPS_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INLAY_OPS_NORM_INL_H_
#undef INLAY_OPS_NORM_INL_H_
#else
#define INLAY_OPS_NORM_INL_H_
#endif

#include <cmath>
#include <cstddef>

#include "ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

namespace {

// Inlined, so that a dimension that is a constant at the call is also one in the generated code.

// Four accumulators hide the latency of the multiply-add; the remaining vectors, the
// last one padded with zeros, are added to the first of them.
HWY_INLINE float FloatSumOfSquares(const float* x, size_t n) {
  const hn::ScalableTag<float> df;
  const size_t lanes = hn::Lanes(df);
  auto s0 = hn::Zero(df), s1 = s0, s2 = s0, s3 = s0;
  size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const auto x0 = hn::LoadU(df, x + i);
    const auto x1 = hn::LoadU(df, x + i + lanes);
    const auto x2 = hn::LoadU(df, x + i + 2 * lanes);
    const auto x3 = hn::LoadU(df, x + i + 3 * lanes);
    s0 = hn::MulAdd(x0, x0, s0);
    s1 = hn::MulAdd(x1, x1, s1);
    s2 = hn::MulAdd(x2, x2, s2);
    s3 = hn::MulAdd(x3, x3, s3);
  }
  for (; i < n; i += lanes) {
    const auto x0 = i + lanes <= n ? hn::LoadU(df, x + i) : hn::LoadN(df, x + i, n - i);
    s0 = hn::MulAdd(x0, x0, s0);
  }
  return hn::ReduceSum(df, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
}

// Squares of more than 1.8e19 overflow in float: such a row, whose norm would be all zeros, is
// added again in double.
HWY_INLINE double SumOfSquares(const float* x, size_t n) {
  const float in_float = FloatSumOfSquares(x, n);
  if (!std::isinf(in_float)) return in_float;
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += double{x[i]} * double{x[i]};
  return sum;
}

HWY_INLINE void NormalizeRow(const float* x, const float* weight, float epsilon, size_t n,
                             float* y) {
  const hn::ScalableTag<float> df;
  const size_t lanes = hn::Lanes(df);
  const double mean = SumOfSquares(x, n) / static_cast<double>(n);
  const auto factor = hn::Set(df, static_cast<float>(1.0 / std::sqrt(mean + epsilon)));
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto scaled = hn::Mul(hn::LoadU(df, x + i), factor);
    hn::StoreU(hn::Mul(scaled, hn::LoadU(df, weight + i)), df, y + i);
  }
  if (i < n) {
    const auto scaled = hn::Mul(hn::LoadN(df, x + i, n - i), factor);
    hn::StoreN(hn::Mul(scaled, hn::LoadN(df, weight + i, n - i)), df, y + i, n - i);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#endif  // INLAY_OPS_NORM_INL_H_
