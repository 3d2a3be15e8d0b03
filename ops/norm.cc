#include "ops/norm.h"

#include <cassert>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/norm.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"
#include "ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {

// Four accumulators hide the latency of the multiply-add; the tail, padded with zeros, goes to the
// first of them.
float SumOfSquares(const float* x, size_t n) {
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

void NormRow(const float* x, const float* weight, float epsilon, size_t n, float* y) {
  const hn::ScalableTag<float> df;
  const size_t lanes = hn::Lanes(df);
  const double mean = static_cast<double>(SumOfSquares(x, n)) / static_cast<double>(n);
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
