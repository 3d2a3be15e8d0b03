// Weighted sums of rows, the other half of attention and of state-space duality.

// Compiled once per CPU target, hence the toggling guard.
#if defined(INLAY_OPS_WEIGHTED_SUM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INLAY_OPS_WEIGHTED_SUM_INL_H_
#undef INLAY_OPS_WEIGHTED_SUM_INL_H_
#else
#define INLAY_OPS_WEIGHTED_SUM_INL_H_
#endif

#include <cstddef>

#include "ops/simd-inl.h"
#include "ops/views.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// out[i] = factor * out[i] + sum over the rows j in order of weights[j] * values[j][i]: one
// multiply, then one multiply-add per row, whatever vector i falls into.
template <class T>
HWY_INLINE void AddWeighted(const float* HWY_RESTRICT weights, Rows<const T> values, float factor,
                            float* HWY_RESTRICT out) {
  const size_t rows = values.rows, dim = values.cols;
  const hn::ScalableTag<float> df;
  const size_t lanes = hn::Lanes(df);
  const auto f = hn::Set(df, factor);
  size_t i = 0;
  for (; i + 4 * lanes <= dim; i += 4 * lanes) {
    auto s0 = hn::Mul(f, hn::LoadU(df, out + i));
    auto s1 = hn::Mul(f, hn::LoadU(df, out + i + lanes));
    auto s2 = hn::Mul(f, hn::LoadU(df, out + i + 2 * lanes));
    auto s3 = hn::Mul(f, hn::LoadU(df, out + i + 3 * lanes));
    for (size_t j = 0; j < rows; ++j) {
      const T* v = values.data + j * values.stride + i;
      const auto w = hn::Set(df, weights[j]);
      s0 = hn::MulAdd(w, LoadFloat(df, v), s0);
      s1 = hn::MulAdd(w, LoadFloat(df, v + lanes), s1);
      s2 = hn::MulAdd(w, LoadFloat(df, v + 2 * lanes), s2);
      s3 = hn::MulAdd(w, LoadFloat(df, v + 3 * lanes), s3);
    }
    hn::StoreU(s0, df, out + i);
    hn::StoreU(s1, df, out + i + lanes);
    hn::StoreU(s2, df, out + i + 2 * lanes);
    hn::StoreU(s3, df, out + i + 3 * lanes);
  }
  for (; i < dim; i += lanes) {
    const bool whole = i + lanes <= dim;
    const size_t n = dim - i;
    auto s = hn::Mul(f, whole ? hn::LoadU(df, out + i) : hn::LoadN(df, out + i, n));
    for (size_t j = 0; j < rows; ++j) {
      const T* v = values.data + j * values.stride + i;
      s = hn::MulAdd(hn::Set(df, weights[j]), whole ? LoadFloat(df, v) : LoadFloatN(df, v, n), s);
    }
    if (whole) {
      hn::StoreU(s, df, out + i);
    } else {
      hn::StoreN(s, df, out + i, n);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#endif  // INLAY_OPS_WEIGHTED_SUM_INL_H_
