#include "ops/rope.h"

#include <cassert>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rope.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Rotates one head: cos and sin are [half], x is [2 * half].
void RotateHead(const float* cos, const float* sin, size_t half, float* x) {
  const hn::ScalableTag<float> df;
  const size_t lanes = hn::Lanes(df);
  for (size_t i = 0; i < half; i += lanes) {
    const bool whole = i + lanes <= half;
    const size_t n = half - i;
    const auto c = whole ? hn::LoadU(df, cos + i) : hn::LoadN(df, cos + i, n);
    const auto s = whole ? hn::LoadU(df, sin + i) : hn::LoadN(df, sin + i, n);
    const auto re = whole ? hn::LoadU(df, x + i) : hn::LoadN(df, x + i, n);
    const auto im = whole ? hn::LoadU(df, x + half + i) : hn::LoadN(df, x + half + i, n);
    const auto new_re = hn::NegMulAdd(im, s, hn::Mul(re, c));
    const auto new_im = hn::MulAdd(re, s, hn::Mul(im, c));
    if (whole) {
      hn::StoreU(new_re, df, x + i);
      hn::StoreU(new_im, df, x + half + i);
    } else {
      hn::StoreN(new_re, df, x + i, n);
      hn::StoreN(new_im, df, x + half + i, n);
    }
  }
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
