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

// All heads of a token: angles [2 * half], x [cols]. kHalf is `half` where code is made for it, or
// 0.
template <size_t kHalf>
HWY_INLINE void RotateHeads(const float* angles, size_t half, size_t cols, float* x) {
  const size_t n = kHalf == 0 ? half : kHalf;
  for (size_t c = 0; c < cols; c += 2 * n) Rotate(angles, angles + n, n, x + c);
}

void RotateToken(const float* angles, size_t half, size_t cols, float* x) {
  switch (half) {
    case 32:
      return RotateHeads<32>(angles, half, cols, x);
    case 64:
      return RotateHeads<64>(angles, half, cols, x);
    case 128:
      return RotateHeads<128>(angles, half, cols, x);
    default:
      return RotateHeads<0>(angles, half, cols, x);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace inlay {
namespace {
HWY_EXPORT(RotateToken);
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
  const auto rotate_token = HWY_DYNAMIC_POINTER(RotateToken);
  for (size_t t = 0; t < x.rows; ++t)
    rotate_token(angles.Row(t), angles.cols / 2, x.cols, x.Row(t));
}

}  // namespace inlay
#endif  // HWY_ONCE
