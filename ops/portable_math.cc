#include "ops/portable_math.h"

#include <bit>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace inlay {
namespace {

using portable_exp::kLn2High;
using portable_exp::kLn2Low;

// The integer nearest to |x| < 2^51.
double Nearest(double x) { return x + portable_exp::kShift - portable_exp::kShift; }

// The sum of c[i] x^i, Horner's scheme.
template <size_t n>
double Polynomial(const double (&c)[n], double x) {
  double sum = c[n - 1];
  for (size_t i = n - 1; i-- > 0;) sum = sum * x + c[i];
  return sum;
}

// 2^n for a normal result.
double PowerOfTwo(int64_t n) { return std::bit_cast<double>((n + 1023) << 52); }

// The Taylor series of sin and cos for |x| up to pi / 4; `c` starts at the third and the fourth
// power. The terms left out are below 2^-58 of the result.
double SinNear0(double x) {
  constexpr double c[] = {-1.0 / 6,        1.0 / 120,          -1.0 / 5040,           1.0 / 362880,
                          -1.0 / 39916800, 1.0 / 6227020800.0, -1.0 / 1307674368000.0};
  const double square = x * x;
  return x + x * square * Polynomial(c, square);
}

double CosNear0(double x) {
  constexpr double c[] = {
      1.0 / 24,        -1.0 / 720,           1.0 / 40320,           -1.0 / 3628800,
      1.0 / 479001600, -1.0 / 87178291200.0, 1.0 / 20922789888000.0};
  const double square = x * x;
  // 1 - square / 2 is rounded; the rounding error is added back.
  const double half = 0.5 * square;
  const double most = 1 - half;
  return most + ((1 - most - half) + square * square * Polynomial(c, square));
}

}  // namespace

double PortableExp(double x) {
  if (std::isnan(x)) return x;
  if (x > portable_exp::kLargest) return std::numeric_limits<double>::infinity();
  if (x < portable_exp::kSmallest) return 0;
  const double n = Nearest(x * portable_exp::kLog2E);
  const double high = x - n * kLn2High, low = n * kLn2Low;
  const double r = high - low;  // |r| <= ln 2 / 2
  const double e = 1 + (r + (((high - r) - low) + r * r * Polynomial(portable_exp::kSeries, r)));
  // In two factors: 2^1024 overflows, where e * 2^1024 may still be finite.
  const auto exponent = static_cast<int64_t>(n);
  return e * PowerOfTwo(exponent / 2) * PowerOfTwo(exponent - exponent / 2);
}

double PortableLog(double x) {
  assert(x >= std::numeric_limits<double>::min());
  if (std::isinf(x)) return x;
  // x = 2^n m with m in [sqrt(1/2), sqrt(2)).
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int64_t n = static_cast<int64_t>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFF) | uint64_t{1023} << 52);
  if (m > 0x1.6a09e667f3bcdp0) {
    m *= 0.5;
    ++n;
  }
  // log m = 2 atanh(s) with s = (m - 1) / (m + 1), |s| < 0.1716: the series up to s^21.
  const double f = m - 1;
  const double s = f / (2 + f);
  constexpr double c[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11,
                          2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21};
  const double square = s * s;
  // 2 s = f - s f, in which f is exact.
  const double tail = s * (square * Polynomial(c, square) - f);
  const auto exponent = static_cast<double>(n);
  return exponent * kLn2High + (f + (tail + exponent * kLn2Low));
}

SinCos PortableSinCos(double x) {
  assert(std::abs(x) <= 0x1p27);
  // pi / 2 as three terms of 25 bits, whose products with n < 2^27 are exact, and a remainder.
  constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
  constexpr double kTerms[] = {0x1.921fb5p0, 0x1.110b46p-26, 0x1.1a6263p-54, 0x1.8a2e03707344ap-81};
  const double n = Nearest(x * kTwoOverPi);
  double r = x;
  for (double term : kTerms) r -= n * term;
  const double sin = SinNear0(r), cos = CosNear0(r);
  switch (static_cast<int64_t>(n) & 3) {
    case 0:
      return {sin, cos};
    case 1:
      return {cos, -sin};
    case 2:
      return {-sin, -cos};
    default:
      return {-cos, sin};
  }
}

}  // namespace inlay
