// The floating-point environment that results are computed in.
#ifndef INLAY_OPS_CPU_FLOAT_ENVIRONMENT_H_
#define INLAY_OPS_CPU_FLOAT_ENVIRONMENT_H_

#include <cfenv>

#ifdef __x86_64__
#include <xmmintrin.h>
#endif

namespace inlay {

// While an object of this class exists, the calling thread rounds to nearest and keeps subnormal
// numbers, as at program start; its destructor restores the previous settings. The process may have
// other settings: a library that was linked with -ffast-math makes every thread treat subnormal
// numbers as zeros.
class FloatEnvironment {
 public:
  FloatEnvironment() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~FloatEnvironment() { std::fesetenv(&before_); }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  std::fenv_t before_;
};

#ifdef __x86_64__
// While an object of this class exists, vector instructions of the calling thread treat subnormal
// operands as zeros and return zeros for subnormal results, as those of AMX and AVX512_BF16 always
// do.
class SubnormalsAreZero {
 public:
  SubnormalsAreZero() : before_(_mm_getcsr()) {
    constexpr unsigned kDenormalsAreZeros = 1u << 6, kFlushToZero = 1u << 15;
    _mm_setcsr(before_ | kDenormalsAreZeros | kFlushToZero);
  }
  ~SubnormalsAreZero() { _mm_setcsr(before_); }
  SubnormalsAreZero(const SubnormalsAreZero&) = delete;
  SubnormalsAreZero& operator=(const SubnormalsAreZero&) = delete;

 private:
  unsigned before_;
};
#endif

}  // namespace inlay

#endif  // INLAY_OPS_CPU_FLOAT_ENVIRONMENT_H_
