#include "ops/router.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>
#include <utility>

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

// NaN if one of the n scores is, else 0: what a sum of weights begins with, so that the damage
// shows in what follows instead of being routed around.
template <class Score>
double NanOr0(const Score& score, size_t n) {
  double nan_or_0 = 0;
  for (size_t i = 0; i < n; ++i) {
    if (std::isnan(score(i))) nan_or_0 = std::numeric_limits<double>::quiet_NaN();
  }
  return nan_or_0;
}

double Logistic(float x) { return 1 / (1 + PortableExp(-double{x})); }

// Divides those of the n values of p that have the k largest scores by their sum, which counts as
// at least 2^-14, multiplies them by `scale`, and replaces the others by 0. If `nan_or_0` is NaN,
// the chosen ones become NaN. score(i) may read p[i].
template <class Score>
void KeepLargest(size_t k, const Score& score, double nan_or_0, float scale, float* p, size_t n) {
  const Largest chosen(k, n, score);
  double sum = nan_or_0;
  for (size_t i = 0; i < n; ++i) {
    if (chosen.Has(i, score(i))) sum += double{p[i]};
  }
  constexpr double kLeast = 0x1p-14;
  for (size_t i = 0; i < n; ++i) {
    p[i] = chosen.Has(i, score(i))
               ? static_cast<float>(double{p[i]} / std::max(sum, kLeast) * scale)
               : 0.0f;
  }
}

// The sum of the two largest of the scores [begin, end); NaN counts as -infinity.
template <class Score>
float SumOfTwo(const Score& score, size_t begin, size_t end) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  float first = kNone, second = kNone;
  for (size_t i = begin; i < end; ++i) {
    const float value = score(i);
    if (value > first) {
      second = std::exchange(first, value);
    } else if (value > second) {
      second = value;
    }
  }
  return first + second;
}

}  // namespace

void KeepTopSoftmax(size_t k, float* logits, size_t n) {
  const Largest chosen(k, n, [&](size_t i) { return logits[i]; });
  const double largest = chosen.first();
  double sum = NanOr0([&](size_t i) { return logits[i]; }, n);
  for (size_t i = 0; i < n; ++i) {
    if (chosen.Has(i, logits[i])) sum += PortableExp(double{logits[i]} - largest);
  }
  for (size_t i = 0; i < n; ++i) {
    logits[i] = chosen.Has(i, logits[i])
                    ? static_cast<float>(PortableExp(double{logits[i]} - largest) / sum)
                    : 0.0f;
  }
}

void KeepTopBiasedLogistic(size_t k, const float* bias, float* logits, size_t n,
                           ExpertGroups groups, float scale) {
  for (size_t i = 0; i < n; ++i) logits[i] = static_cast<float>(Logistic(logits[i]));
  const auto score = [&](size_t i) { return logits[i] + bias[i]; };
  const double nan_or_0 = NanOr0(score, n);
  if (groups.used == groups.count) return KeepLargest(k, score, nan_or_0, scale, logits, n);

  assert(groups.count <= ExpertGroups::kMost && n % groups.count == 0);
  const size_t size = n / groups.count;
  assert(size >= 2 && k <= groups.used * size);
  const auto of_group = [&](size_t g) { return SumOfTwo(score, g * size, (g + 1) * size); };
  const Largest chosen(groups.used, groups.count, of_group);
  std::array<bool, ExpertGroups::kMost> used;
  for (size_t g = 0; g < groups.count; ++g) used[g] = chosen.Has(g, of_group(g));
  const auto score_if_used = [&](size_t i) {
    return used[i / size] ? score(i) : -std::numeric_limits<float>::infinity();
  };
  KeepLargest(k, score_if_used, nan_or_0, scale, logits, n);
}

}  // namespace inlay
