#include "ops/router.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "ops/portable_math.h"

namespace inlay {
namespace {

// The k largest of n scores, the lower index first among equals; NaN counts as -infinity.
//
// Experts are few (tens) and the chosen ones fewer, so k passes beat sorting. Instead of marks, a
// bound separates the chosen ones: the i-th largest is the first one after the (i - 1)-th in the
// order (value descending, index ascending).
class Largest {
 public:
  template <class Score>
  Largest(size_t k, size_t n, const Score& score) {
    assert(k >= 1 && k <= n);
    bound_ = std::numeric_limits<float>::infinity();
    for (size_t pass = 0; pass < k; ++pass) {
      size_t best = n;
      for (size_t i = 0; i < n; ++i) {
        const float value = Value(score(i));
        const bool after = pass == 0 || value < bound_ || (value == bound_ && i > last_);
        if (after && (best == n || value > Value(score(best)))) best = i;
      }
      last_ = best;
      bound_ = Value(score(best));
      if (pass == 0) first_ = bound_;
    }
  }

  float first() const { return first_; }
  // Whether the score with this index is one of them.
  bool Has(size_t i, float score) const {
    return Value(score) > bound_ || (Value(score) == bound_ && i <= last_);
  }

 private:
  static float Value(float score) {
    return std::isnan(score) ? -std::numeric_limits<float>::infinity() : score;
  }

  float first_ = 0;  // the largest
  float bound_ = 0;  // the k-th largest,
  size_t last_ = 0;  // and its index
};

double Logistic(float x) { return 1 / (1 + PortableExp(-double{x})); }

}  // namespace

void KeepTopSoftmax(size_t k, float* logits, size_t n) {
  const Largest chosen(k, n, [&](size_t i) { return logits[i]; });
  const double largest = chosen.first();
  double sum = 0;
  for (size_t i = 0; i < n; ++i) {
    if (chosen.Has(i, logits[i])) sum += PortableExp(double{logits[i]} - largest);
  }
  for (size_t i = 0; i < n; ++i) {
    logits[i] = chosen.Has(i, logits[i])
                    ? static_cast<float>(PortableExp(double{logits[i]} - largest) / sum)
                    : 0.0f;
  }
}

void KeepTopBiasedLogistic(size_t k, const float* bias, float* logits, size_t n) {
  for (size_t i = 0; i < n; ++i) logits[i] = static_cast<float>(Logistic(logits[i]));
  const auto score = [&](size_t i) { return logits[i] + bias[i]; };
  const Largest chosen(k, n, score);
  double sum = 0;
  for (size_t i = 0; i < n; ++i) {
    if (chosen.Has(i, score(i))) sum += double{logits[i]};
  }
  constexpr double kLeast = 0x1p-14;
  for (size_t i = 0; i < n; ++i) {
    logits[i] = chosen.Has(i, score(i))
                    ? static_cast<float>(double{logits[i]} / std::max(sum, kLeast))
                    : 0.0f;
  }
}

}  // namespace inlay
