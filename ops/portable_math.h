// Elementary functions whose bits do not depend on the C library: libm's results differ between
// versions, and within a version between CPUs. These use only additions, multiplications and
// divisions of doubles, which the numerics contract (no contraction, rounding to nearest) makes the
// same everywhere.
#ifndef INLAY_OPS_PORTABLE_MATH_H_
#define INLAY_OPS_PORTABLE_MATH_H_

namespace inlay {

// What PortableExp computes with, for the kernel that does the same for a row.
namespace portable_exp {

inline constexpr double kLog2E = 0x1.71547652b82fep0;

// ln 2 as a sum of two terms, of which the first has so few bits that its products with exponents
// are exact (Cody and Waite 1980).
inline constexpr double kLn2High = 0x1.62e42feep-1;
inline constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

// Adding and subtracting it leaves the integer nearest to |x| < 2^51: no bits remain for a
// fraction.
inline constexpr double kShift = 0x1.8p52;

// Above the one the result is infinite, below the other 0.
inline constexpr double kLargest = 709.78, kSmallest = -708;

// (e^x - 1 - x) / x^2 as a Taylor series. Up to ln 2 / 2 the terms left out are below 2^-57.
inline constexpr double kSeries[] = {
    1.0 / 2,     1.0 / 6,      1.0 / 24,      1.0 / 120,      1.0 / 720,       1.0 / 5040,
    1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0};

}  // namespace portable_exp

// e^x within 2 ulp. Infinite above 709.78, 0 below -708 (results are never subnormal); NaN stays
// NaN.
double PortableExp(double x);

// The natural logarithm of a normal x > 0, infinity included, within 2 ulp.
double PortableLog(double x);

// Sine and cosine within 2^-51 for |x| up to 2^27, which covers the positions of any context.
struct SinCos {
  double sin, cos;
};
SinCos PortableSinCos(double x);

}  // namespace inlay

#endif  // INLAY_OPS_PORTABLE_MATH_H_
