// Elementary functions whose bits do not depend on the C library: libm's results differ between
// versions, and within a version between CPUs. These use only additions, multiplications and
// divisions of doubles, which the numerics contract (no contraction, rounding to nearest) makes the
// same everywhere.
#ifndef INLAY_OPS_PORTABLE_MATH_H_
#define INLAY_OPS_PORTABLE_MATH_H_

namespace inlay {

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
