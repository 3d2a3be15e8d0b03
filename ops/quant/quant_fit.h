// Searches for the scale that represents a few floats best by small integers.
#ifndef INLAY_OPS_QUANT_QUANT_FIT_H_
#define INLAY_OPS_QUANT_QUANT_FIT_H_

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace inlay {

// The bytes of a file depend on every rounding in here: the order of operations is part of the
// formats' reference quantizers, and multiply-adds must not be fused.

// v rounded to the nearest integer, ties to even, within [low, high]; low for NaN.
inline int RoundWithin(float v, int low, int high) {
  if (!(v > static_cast<float>(low))) return low;
  if (v >= static_cast<float>(high)) return high;
  return static_cast<int>(std::nearbyint(v));
}

// v truncated towards zero, within [low, high]; low for NaN.
inline int TruncateWithin(float v, int low, int high) {
  if (!(v > static_cast<float>(low))) return low;
  if (v >= static_cast<float>(high)) return high;
  return static_cast<int>(v);
}

// The first of the values that are largest in magnitude, with its sign; 0 if n is 0.
inline float Extreme(const float* x, size_t n) {
  float extreme = 0;
  for (size_t i = 0; i < n; ++i) {
    if (std::abs(x[i]) > std::abs(extreme)) extreme = x[i];
  }
  return extreme;
}

// Groups whose largest magnitude is below this count as zeros.
inline constexpr float kNegligible = 1e-15f;

// Finds q in [-64 / 2, 64 / 2) and the returned scale for x ~ scale * q, minimising the error
// weighted by x^2 over 19 trial scales around the one that maps the extreme value to -32.
// levels[i] = q + 32, or 0 for a group of zeros.
float FitSixBits(const float (&x)[16], uint8_t* levels);

// The same for q in [-4, 4) by coordinate descent: one q at a time moves to its best integer, in at
// most five rounds. levels[i] = q + 4, or 0 for a group of zeros.
float FitThreeBits(const float (&x)[16], uint8_t* levels);

// How FitAffine searches.
struct AffineSearch {
  int max_level;
  float first;          // numerator of the first trial scale, less max_level
  int last_step;        // steps of 0.1 from `first`
  bool absolute_error;  // minimise |error| rather than error^2
};

// Finds q in [0, max_level] and the returned scale, with *min >= 0, for x ~ scale * q - *min, by
// weighted least squares for each of the trial scales.
float FitAffine(const AffineSearch& search, const float* x, const float* weights, size_t n,
                uint8_t* levels, float* min);

// The index of the IQ4_NL value nearest to v, the upper one of two equally near.
int NearestIq4Nl(float v);

// The scale for x ~ scale * IQ4_NL value with the least error weighted by x^2 among 16 trials.
float FitIq4Nl(const float (&x)[32]);

}  // namespace inlay

#endif  // INLAY_OPS_QUANT_QUANT_FIT_H_
