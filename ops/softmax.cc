#include "ops/softmax.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/softmax.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"
#include "ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {

// The largest value that is not NaN; -infinity if there is none.
float MaxOf(const float* x, size_t n) {
  const hn::ScalableTag<float> df;
  const size_t lanes = hn::Lanes(df);
  const auto lowest = hn::Set(df, -std::numeric_limits<float>::infinity());
  auto largest = lowest;
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::LoadU(df, x + i);
    largest = hn::IfThenElse(hn::Gt(v, largest), v, largest);
  }
  if (i < n) {
    const auto v = hn::LoadNOr(lowest, df, x + i, n - i);
    largest = hn::IfThenElse(hn::Gt(v, largest), v, largest);
  }
  return hn::ReduceMax(df, largest);
}

// Sum over i of exp(x[i] - largest), in double.
double SumOfExp(const float* x, size_t n, float largest) {
  const hn::ScalableTag<double> dd;
  const hn::Rebind<float, decltype(dd)> df;
  const size_t lanes = hn::Lanes(dd);
  const auto shift = hn::Set(dd, static_cast<double>(largest));
  auto sum = hn::Zero(dd);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::PromoteTo(dd, hn::LoadU(df, x + i));
    sum = hn::Add(sum, hn::Exp(dd, hn::Sub(v, shift)));
  }
  if (i < n) {
    const auto v = hn::PromoteTo(dd, hn::LoadN(df, x + i, n - i));
    const auto e = hn::Exp(dd, hn::Sub(v, shift));
    sum = hn::Add(sum, hn::IfThenElseZero(hn::FirstN(dd, n - i), e));
  }
  return hn::ReduceSum(dd, sum);
}

bool AllFiniteOf(const float* x, size_t n) {
  const hn::ScalableTag<float> df;
  const size_t lanes = hn::Lanes(df);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    if (!hn::AllTrue(df, hn::IsFinite(hn::LoadU(df, x + i)))) return false;
  }
  return i == n || hn::AllTrue(df, hn::IsFinite(hn::LoadN(df, x + i, n - i)));
}

}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace inlay {
namespace {

HWY_EXPORT(MaxOf);
HWY_EXPORT(SumOfExp);
HWY_EXPORT(AllFiniteOf);

// A strict weak order, NaNs last.
bool Before(const IndexedValue& a, const IndexedValue& b) {
  const bool a_nan = std::isnan(a.value), b_nan = std::isnan(b.value);
  if (a_nan != b_nan) return b_nan;
  if (!a_nan && a.value != b.value) return a.value > b.value;
  return a.index < b.index;
}

}  // namespace

size_t ArgMax(const float* x, size_t n) {
  assert(n > 0);
  const float largest = HWY_DYNAMIC_DISPATCH(MaxOf)(x, n);
  for (size_t i = 0; i < n; ++i) {
    if (x[i] == largest) return i;
  }
  return 0;
}

double LogSumExp(const float* x, size_t n) {
  const float largest = HWY_DYNAMIC_DISPATCH(MaxOf)(x, n);
  // A NaN must show, also where hn::Exp would take it for a number too small to count.
  if (std::any_of(x, x + n, [](float v) { return std::isnan(v); })) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (std::isinf(largest)) return largest;  // no term at all, or an infinite one
  return largest + std::log(HWY_DYNAMIC_DISPATCH(SumOfExp)(x, n, largest));
}

std::vector<IndexedValue> TopK(const float* x, size_t n, size_t k) {
  k = std::min(k, n);
  std::vector<IndexedValue> top;
  if (k == 0) return top;
  top.reserve(k);
  // A heap whose front is the worst of the k best so far. A later equal value never displaces.
  for (size_t i = 0; i < n; ++i) {
    const IndexedValue candidate = {x[i], static_cast<int32_t>(i)};
    if (top.size() < k) {
      top.push_back(candidate);
      std::push_heap(top.begin(), top.end(), Before);
    } else if (Before(candidate, top.front())) {
      std::pop_heap(top.begin(), top.end(), Before);
      top.back() = candidate;
      std::push_heap(top.begin(), top.end(), Before);
    }
  }
  std::sort_heap(top.begin(), top.end(), Before);
  return top;
}

bool AllFinite(const float* x, size_t n) { return HWY_DYNAMIC_DISPATCH(AllFiniteOf)(x, n); }

}  // namespace inlay
#endif  // HWY_ONCE
