// The floating-point environment that results are computed in.
#ifndef INLAY_OPS_CPU_FLOAT_ENVIRONMENT_H_
#define INLAY_OPS_CPU_FLOAT_ENVIRONMENT_H_

#include <cfenv>

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

}  // namespace inlay

#endif  // INLAY_OPS_CPU_FLOAT_ENVIRONMENT_H_
