// Searches for the scale that represents a few floats best by small integers.
#ifndef INLAY_OPS_QUANT_QUANT_FIT_H_
#define INLAY_OPS_QUANT_QUANT_FIT_H_

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace inlay {

// The bytes of a file depend on every rounding in here: the order of operations is part of the
// formats' reference quantizers, and multiply-adds must not be fused.

// v rounded to the nearest integer, ties to even, within [low, high]; low for NaN. Both bounds are
// far below 2^22 in magnitude, and floats of 1.5 * 2^23 and a little more or less are integers:
// adding that much rounds without the call that std::nearbyint is before SSE4.1.
inline int RoundWithin(float v, int low, int high) {
  constexpr float kIntegers = 0x1.8p23f;
  if (!(v > static_cast<float>(low))) return low;
  if (v >= static_cast<float>(high)) return high;
  return static_cast<int>((v + kIntegers) - kIntegers);
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

// Finds q in [-4, 4) and the returned scale for x ~ scale * q, minimising the error weighted by
// x^2 by coordinate descent: one q at a time moves to its best integer, in at most five rounds.
// levels[i] = q + 4, or 0 for a group of zeros.
float FitThreeBits(const float (&x)[16], uint8_t* levels);

// The index of the IQ4_NL value nearest to v, the upper one of two equally near.
int NearestIq4Nl(float v);

// The scale for x ~ scale * IQ4_NL value with the least error weighted by x^2 among 16 trials.
float FitIq4Nl(const float (&x)[32]);

}  // namespace inlay

#endif  // INLAY_OPS_QUANT_QUANT_FIT_H_
