#include "ops/softmax.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "ops/portable_math.h"
#include "ops/row_kernels.h"

namespace inlay {
namespace {

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
  const float largest = LargestOfRow(x, n);
  for (size_t i = 0; i < n; ++i) {
    if (x[i] == largest) return i;
  }
  return 0;
}

double LogSumExp(const float* x, size_t n) {
  const float largest = LargestOfRow(x, n);
  // A NaN must reach the result, also where hn::Exp would treat it as a number too small to count.
  if (std::any_of(x, x + n, [](float v) { return std::isnan(v); })) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (std::isinf(largest)) return largest;  // no term at all, or an infinite one
  return largest + PortableLog(SumOfRowExp(x, n, largest));
}

std::vector<IndexedValue> TopK(const float* x, size_t n, size_t k) {
  k = std::min(k, n);
  std::vector<IndexedValue> top;
  if (k == 0) return top;
  top.reserve(k);
  // A heap whose front is the worst of the k best so far. A later equal value never displaces one
  // of them.
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

bool AllFinite(const float* x, size_t n) { return IsRowFinite(x, n); }

}  // namespace inlay
