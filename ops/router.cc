#include "ops/router.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "ops/portable_math.h"

namespace inlay {

void KeepTopSoftmax(size_t k, float* logits, size_t n) {
  assert(k >= 1 && k <= n);
  // Experts are few (tens) and the chosen ones fewer, so k passes beat sorting. Instead of
  // marks, a bound separates the chosen ones: the i-th largest is the first one after the (i -
  // 1)-th in the order (value descending, index ascending).
  const auto value = [&](size_t i) {
    return std::isnan(logits[i]) ? -std::numeric_limits<float>::infinity() : logits[i];
  };
  float last_value = std::numeric_limits<float>::infinity();
  size_t last = 0;
  float largest = 0;
  for (size_t pass = 0; pass < k; ++pass) {
    size_t best = n;
    for (size_t i = 0; i < n; ++i) {
      const bool after = pass == 0 || value(i) < last_value || (value(i) == last_value && i > last);
      if (after && (best == n || value(i) > value(best))) best = i;
    }
    last = best;
    last_value = value(best);
    if (pass == 0) largest = last_value;
  }
  const auto chosen = [&](size_t i) {
    return value(i) > last_value || (value(i) == last_value && i <= last);
  };
  double sum = 0;
  for (size_t i = 0; i < n; ++i) {
    if (chosen(i)) sum += PortableExp(double{logits[i]} - largest);
  }
  for (size_t i = 0; i < n; ++i) {
    // In place: later elements are compared with last_value, a copy, and not with overwritten
    // logits.
    logits[i] =
        chosen(i) ? static_cast<float>(PortableExp(double{logits[i]} - largest) / sum) : 0.0f;
  }
}

}  // namespace inlay
