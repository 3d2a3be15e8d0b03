#include "ops/softmax.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

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

namespace {

// A key that is smaller the larger the value is, and largest for a NaN; of 0 and -0, which are
// equal, it is the same.
uint32_t DescendingKey(float value) {
  if (std::isnan(value)) return std::numeric_limits<uint32_t>::max();
  constexpr uint32_t kSign = 0x80000000;
  const uint32_t bits = value == 0 ? 0 : std::bit_cast<uint32_t>(value);
  const uint32_t ascending = (bits & kSign) != 0 ? ~bits : bits | kSign;
  return ~ascending;
}

// All values in the order of Before, by a radix sort from the lowest bits on: it keeps the order of
// equal values, and does the same few passes whatever they are.
void SortAll(const float* x, size_t n, std::vector<IndexedValue>& sorted) {
  constexpr int kBits = 11, kPasses = 3;
  constexpr uint32_t kMask = (1u << kBits) - 1;
  std::array<std::array<uint32_t, kMask + 1>, kPasses> places = {};  // of the next one of each key
  for (size_t i = 0; i < n; ++i) {
    const uint32_t key = DescendingKey(x[i]);
    for (int pass = 0; pass < kPasses; ++pass) ++places[pass][key >> pass * kBits & kMask];
  }
  for (auto& counts : places)
    std::exclusive_scan(counts.begin(), counts.end(), counts.begin(), uint32_t{0});
  sorted.resize(2 * n);
  IndexedValue* const result = sorted.data();
  IndexedValue* const between = result + n;
  const auto put = [&](int pass, IndexedValue value, IndexedValue* to) {
    to[places[pass][DescendingKey(value.value) >> pass * kBits & kMask]++] = value;
  };
  for (size_t i = 0; i < n; ++i) put(0, {x[i], static_cast<int32_t>(i)}, result);
  for (size_t i = 0; i < n; ++i) put(1, result[i], between);
  for (size_t i = 0; i < n; ++i) put(2, between[i], result);
  sorted.resize(n);
}

}  // namespace

void TopK(const float* x, size_t n, size_t k, std::vector<IndexedValue>& top) {
  k = std::min(k, n);
  top.clear();
  if (k == 0) return;
  constexpr size_t kManyOf = 16;  // from one in so many on, sorting all is faster
  if (n >= 1024 && k >= n / kManyOf) {
    SortAll(x, n, top);
    top.resize(k);
    return;
  }
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
}

void SetWeights(const std::vector<IndexedValue>& values, float temperature,
                std::vector<double>& weights) {
  weights.resize(values.size());
  if (values.empty()) return;
  const double first = values.front().value;
  for (size_t i = 0; i < values.size(); ++i) weights[i] = (values[i].value - first) / temperature;
  ExpOfRow(weights.data(), weights.size());
}

}  // namespace inlay
