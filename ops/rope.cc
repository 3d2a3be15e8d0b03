#include "ops/rope.h"

#include <cassert>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rope.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"
#include "ops/rope-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {

void RotateHead(const float* cos, const float* sin, size_t half, float* x) {
  Rotate(cos, sin, half, x);
}

}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace inlay {
namespace {
HWY_EXPORT(RotateHead);
}  // namespace

void RopeAngles(size_t first_position, double base, double scale, FloatRows angles) {
  assert(angles.cols % 2 == 0);
  const size_t half = angles.cols / 2;
  for (size_t i = 0; i < half; ++i) {
    const double frequency =
        std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(angles.cols));
    for (size_t t = 0; t < angles.rows; ++t) {
      const double angle = static_cast<double>(first_position + t) / scale * frequency;
      angles.Row(t)[i] = static_cast<float>(std::cos(angle));
      angles.Row(t)[half + i] = static_cast<float>(std::sin(angle));
    }
  }
}

void ApplyRope(ConstFloatRows angles, FloatRows x) {
  assert(angles.rows == x.rows && angles.cols % 2 == 0 && x.cols % angles.cols == 0);
  const auto rotate_head = HWY_DYNAMIC_POINTER(RotateHead);
  const size_t half = angles.cols / 2;
  for (size_t t = 0; t < x.rows; ++t) {
    const float* cos = angles.Row(t);
    for (size_t c = 0; c < x.cols; c += angles.cols) {
      rotate_head(cos, cos + half, half, x.Row(t) + c);
    }
  }
}

}  // namespace inlay
#endif  // HWY_ONCE
