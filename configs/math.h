// Mathematics that configs need at compile time and C++20's library computes only at run time.
#ifndef INLAY_CONFIGS_MATH_H_
#define INLAY_CONFIGS_MATH_H_

namespace inlay {

// Square root for constants (std::sqrt is not constexpr in C++20): Newton's iteration from above,
// which decreases until it has converged.
constexpr double ConstexprSqrt(double x) {
  double root = x > 1 ? x : 1;
  for (double next = (root + x / root) / 2; next < root; next = (root + x / root) / 2) root = next;
  return root;
}

// a / b, or 0 where b is 0: what is wrong with such a number is then said by the check of the part
// that it is passed to, and not by the division.
constexpr int Quotient(int a, int b) { return b == 0 ? 0 : a / b; }

// num / den, as a template argument: not every compiler that Inlay supports accepts floating-point
// template arguments.
struct Ratio {
  int num = 1;
  int den = 1;

  constexpr float value() const { return static_cast<float>(static_cast<double>(num) / den); }
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_MATH_H_
