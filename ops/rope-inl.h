// The inner loops of the rotary embedding.

// Compiled once per CPU target, hence the toggling guard.
#if defined(INLAY_OPS_ROPE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INLAY_OPS_ROPE_INL_H_
#undef INLAY_OPS_ROPE_INL_H_
#else
#define INLAY_OPS_ROPE_INL_H_
#endif

#include <cstddef>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

namespace {

// Rotates one head whose elements i and i + half belong together: cos and sin are [half], x is
// [2 * half]. Inlined, so that a dimension that is a constant at the call is also one in the
// generated code.
HWY_INLINE void Rotate(const float* cos, const float* sin, size_t half, float* x) {
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

// The same for a head whose elements 2 * i and 2 * i + 1 belong together.
HWY_INLINE void RotateInterleaved(const float* cos, const float* sin, size_t half, float* x) {
  const hn::ScalableTag<float> df;
  const size_t lanes = hn::Lanes(df);
  size_t i = 0;
  for (; i + lanes <= half; i += lanes) {
    const auto c = hn::LoadU(df, cos + i), s = hn::LoadU(df, sin + i);
    hn::Vec<decltype(df)> re, im;
    hn::LoadInterleaved2(df, x + 2 * i, re, im);
    hn::StoreInterleaved2(hn::NegMulAdd(im, s, hn::Mul(re, c)), hn::MulAdd(re, s, hn::Mul(im, c)),
                          df, x + 2 * i);
  }
  const hn::CappedTag<float, 1> d1;
  for (; i < half; ++i) {
    const auto c = hn::Set(d1, cos[i]), s = hn::Set(d1, sin[i]);
    const auto re = hn::Set(d1, x[2 * i]), im = hn::Set(d1, x[2 * i + 1]);
    x[2 * i] = hn::GetLane(hn::NegMulAdd(im, s, hn::Mul(re, c)));
    x[2 * i + 1] = hn::GetLane(hn::MulAdd(re, s, hn::Mul(im, c)));
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#endif  // INLAY_OPS_ROPE_INL_H_
