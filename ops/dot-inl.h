// The inner product tile shared by the matrix products: four weight rows by one, two or four
// tokens.

// Compiled once per CPU target, hence the toggling guard.
#if defined(INLAY_OPS_DOT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INLAY_OPS_DOT_INL_H_
#undef INLAY_OPS_DOT_INL_H_
#else
#define INLAY_OPS_DOT_INL_H_
#endif

#include <algorithm>
#include <cstddef>

#include "ops/simd-inl.h"
#include "ops/views.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

namespace {

// Weight rows of a tile here; those of a packed matrix (kTileRows) are 16.
inline constexpr size_t kDotRows = 4;

// Tokens of a tile. 4 x 4 accumulators, 4 activations and a weight fit 32 registers; with the 16 of
// AVX2 and below it is 4 x 2. The chain of operations for one element is the same for every tile
// size.
#if HWY_ARCH_X86 && HWY_TARGET >= HWY_AVX2
inline constexpr size_t kTileTokens = 2;
#else
inline constexpr size_t kTileTokens = 4;
#endif

// out[t * kDotRows + r] = sum over i < k of w_r[i] * x_t[i], with w_r = w[r] and x_t = x[t].
// One vector accumulator per element runs over i in steps of a vector, the tail padded with
// zeros, and its lanes are summed at the end: the order depends on k alone. The accumulators
// are named because scalable vectors cannot be array elements.
template <size_t kTokens, class W>
HWY_NOINLINE void DotTile(const W* const* HWY_RESTRICT w, const float* const* HWY_RESTRICT x,
                          size_t k, float* HWY_RESTRICT out) {
  static_assert(kTokens == 1 || kTokens == 2 || kTokens == 4);
  const hn::ScalableTag<float> df;
  using V = hn::Vec<decltype(df)>;
  const W* HWY_RESTRICT w0 = w[0];
  const W* HWY_RESTRICT w1 = w[1];
  const W* HWY_RESTRICT w2 = w[2];
  const W* HWY_RESTRICT w3 = w[3];
  V s00 = hn::Zero(df), s01 = s00, s02 = s00, s03 = s00;
  V s10 = s00, s11 = s00, s12 = s00, s13 = s00;
  V s20 = s00, s21 = s00, s22 = s00, s23 = s00;
  V s30 = s00, s31 = s00, s32 = s00, s33 = s00;
  const size_t lanes = hn::Lanes(df);

  for (size_t i = 0; i < k; i += lanes) {
    V a0, a1, a2, a3, b0, b1, b2, b3;
    if (HWY_LIKELY(i + lanes <= k)) {
      a0 = LoadFloat(df, w0 + i);
      a1 = LoadFloat(df, w1 + i);
      a2 = LoadFloat(df, w2 + i);
      a3 = LoadFloat(df, w3 + i);
      b0 = hn::LoadU(df, x[0] + i);
      b1 = kTokens >= 2 ? hn::LoadU(df, x[1] + i) : b0;
      b2 = kTokens >= 4 ? hn::LoadU(df, x[2] + i) : b0;
      b3 = kTokens >= 4 ? hn::LoadU(df, x[3] + i) : b0;
    } else {
      const size_t n = k - i;
      a0 = LoadFloatN(df, w0 + i, n);
      a1 = LoadFloatN(df, w1 + i, n);
      a2 = LoadFloatN(df, w2 + i, n);
      a3 = LoadFloatN(df, w3 + i, n);
      b0 = hn::LoadN(df, x[0] + i, n);
      b1 = kTokens >= 2 ? hn::LoadN(df, x[1] + i, n) : b0;
      b2 = kTokens >= 4 ? hn::LoadN(df, x[2] + i, n) : b0;
      b3 = kTokens >= 4 ? hn::LoadN(df, x[3] + i, n) : b0;
    }
    s00 = hn::MulAdd(a0, b0, s00);
    s01 = hn::MulAdd(a1, b0, s01);
    s02 = hn::MulAdd(a2, b0, s02);
    s03 = hn::MulAdd(a3, b0, s03);
    if constexpr (kTokens >= 2) {
      s10 = hn::MulAdd(a0, b1, s10);
      s11 = hn::MulAdd(a1, b1, s11);
      s12 = hn::MulAdd(a2, b1, s12);
      s13 = hn::MulAdd(a3, b1, s13);
    }
    if constexpr (kTokens >= 4) {
      s20 = hn::MulAdd(a0, b2, s20);
      s21 = hn::MulAdd(a1, b2, s21);
      s22 = hn::MulAdd(a2, b2, s22);
      s23 = hn::MulAdd(a3, b2, s23);
      s30 = hn::MulAdd(a0, b3, s30);
      s31 = hn::MulAdd(a1, b3, s31);
      s32 = hn::MulAdd(a2, b3, s32);
      s33 = hn::MulAdd(a3, b3, s33);
    }
  }
  out[0] = hn::ReduceSum(df, s00);
  out[1] = hn::ReduceSum(df, s01);
  out[2] = hn::ReduceSum(df, s02);
  out[3] = hn::ReduceSum(df, s03);
  if constexpr (kTokens >= 2) {
    out[4] = hn::ReduceSum(df, s10);
    out[5] = hn::ReduceSum(df, s11);
    out[6] = hn::ReduceSum(df, s12);
    out[7] = hn::ReduceSum(df, s13);
  }
  if constexpr (kTokens >= 4) {
    out[8] = hn::ReduceSum(df, s20);
    out[9] = hn::ReduceSum(df, s21);
    out[10] = hn::ReduceSum(df, s22);
    out[11] = hn::ReduceSum(df, s23);
    out[12] = hn::ReduceSum(df, s30);
    out[13] = hn::ReduceSum(df, s31);
    out[14] = hn::ReduceSum(df, s32);
    out[15] = hn::ReduceSum(df, s33);
  }
}

// y[t, r] = sum over c of w[r][c] * x[t, c], for `rows` rows of w. A tile that is not
// full repeats its last row or token, and the repeated results are dropped.
template <class W>
HWY_NOINLINE void MultiplyRows(const W* const* w, size_t w_rows, ConstFloatRows x, FloatRows y) {
  HWY_ALIGN float out[kDotRows * 4];
  for (size_t t = 0; t < x.rows; t += kTileTokens) {
    const size_t tokens = std::min(kTileTokens, x.rows - t);
    const float* xs[4];
    for (size_t i = 0; i < 4; ++i) xs[i] = x.Row(t + std::min(i, tokens - 1));
    for (size_t r = 0; r < w_rows; r += kDotRows) {
      const size_t rows = std::min(kDotRows, w_rows - r);
      const W* ws[kDotRows];
      for (size_t i = 0; i < kDotRows; ++i) ws[i] = w[r + std::min(i, rows - 1)];
      if (tokens == 1) {
        DotTile<1>(ws, xs, x.cols, out);
      } else if (tokens == 2) {
        DotTile<2>(ws, xs, x.cols, out);
      } else {
        DotTile<kTileTokens>(ws, xs, x.cols, out);
      }
      for (size_t i = 0; i < tokens; ++i) {
        for (size_t j = 0; j < rows; ++j) y.Row(t + i)[r + j] = out[i * kDotRows + j];
      }
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#endif  // INLAY_OPS_DOT_INL_H_
