// Weighted sums of rows for several outputs at once: the small matrix product of state-space
// duality.

// Compiled once per CPU target, hence the toggling guard.
#if defined(INLAY_OPS_ADD_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INLAY_OPS_ADD_ROWS_INL_H_
#undef INLAY_OPS_ADD_ROWS_INL_H_
#else
#define INLAY_OPS_ADD_ROWS_INL_H_
#endif

#include <cstddef>

#include "ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

namespace {

// Outputs that share the reads of the rows, and vectors that are summed at once for each: 6 x 4
// sums, 4 operands and a factor fit 32 registers, 4 x 2 fit 16. Scalable vectors cannot be array
// elements.
#if HWY_HAVE_SCALABLE
constexpr size_t kSumOutputs = 1;
constexpr size_t kSumVectors = 1;
#elif HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3
constexpr size_t kSumOutputs = 4;
constexpr size_t kSumVectors = 2;
#else
constexpr size_t kSumOutputs = 6;
constexpr size_t kSumVectors = 4;
#endif

// One output: out = scale * in + sum over the rows; in and out may be the same.
struct SumOutput {
  const float* in;
  float scale;
  float* out;
};

// V vectors from element i on, n elements in the last if it is a part of one.
template <size_t R, size_t V, bool kPart, class DF, class Factor, class Row>
HWY_INLINE void AddRowsAt(DF df, size_t i, size_t n, const SumOutput* outputs, size_t rows,
                          const Factor& factor, const Row& row) {
  const size_t lanes = hn::Lanes(df);
  const auto load = [&](const float* p)
                        HWY_ATTR { return kPart ? hn::LoadN(df, p, n) : hn::LoadU(df, p); };
  const auto store = [&](auto v, float* p) HWY_ATTR {
    if constexpr (kPart) {
      hn::StoreN(v, df, p, n);
    } else {
      hn::StoreU(v, df, p);
    }
  };
#if HWY_HAVE_SCALABLE
  static_assert(R == 1 && V == 1);
  auto sum = hn::Mul(hn::Set(df, outputs[0].scale), load(outputs[0].in + i));
  for (size_t j = 0; j < rows; ++j) {
    sum = hn::MulAdd(hn::Set(df, factor(0, j)), load(row(j) + i), sum);
  }
  store(sum, outputs[0].out + i);
  (void)lanes;
#else
  hn::Vec<DF> sum[R][V];
  for (size_t r = 0; r < R; ++r) {
    const auto scale = hn::Set(df, outputs[r].scale);
    for (size_t v = 0; v < V; ++v) sum[r][v] = hn::Mul(scale, load(outputs[r].in + i + v * lanes));
  }
  for (size_t j = 0; j < rows; ++j) {
    hn::Vec<DF> x[V];
    for (size_t v = 0; v < V; ++v) x[v] = load(row(j) + i + v * lanes);
    for (size_t r = 0; r < R; ++r) {
      const auto f = hn::Set(df, factor(r, j));
      for (size_t v = 0; v < V; ++v) sum[r][v] = hn::MulAdd(f, x[v], sum[r][v]);
    }
  }
  for (size_t r = 0; r < R; ++r) {
    for (size_t v = 0; v < V; ++v) store(sum[r][v], outputs[r].out + i + v * lanes);
  }
#endif
}

// outputs[r].out[i] = scale * in[i] + sum over j < rows in order of factor(r, j) * row(j)[i], for
// R outputs and i < dim: one multiply, then one multiply-add per row, whatever R and whatever
// vector i falls into. factor returns a float, row a pointer.
template <size_t R, class Factor, class Row>
HWY_INLINE void AddRows(const SumOutput* outputs, size_t dim, size_t rows, const Factor& factor,
                        const Row& row) {
  const hn::ScalableTag<float> df;
  const size_t lanes = hn::Lanes(df);
  size_t i = 0;
  for (; i + kSumVectors * lanes <= dim; i += kSumVectors * lanes) {
    AddRowsAt<R, kSumVectors, false>(df, i, 0, outputs, rows, factor, row);
  }
  for (; i + lanes <= dim; i += lanes) AddRowsAt<R, 1, false>(df, i, 0, outputs, rows, factor, row);
  if (i < dim) AddRowsAt<R, 1, true>(df, i, dim - i, outputs, rows, factor, row);
}

// Calls run.operator()<R>(first) so that each of `count` outputs is computed once: kSumOutputs at a
// time while there are so many, then two, then one.
template <class Run>
HWY_INLINE void ForEachOutputs(size_t count, const Run& run) {
  size_t first = 0;
  for (; first + kSumOutputs <= count; first += kSumOutputs) {
    run.template operator()<kSumOutputs>(first);
  }
#if !HWY_HAVE_SCALABLE
  for (; first + 2 <= count; first += 2) run.template operator()<2>(first);
  for (; first < count; ++first) run.template operator()<1>(first);
#endif
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#endif  // INLAY_OPS_ADD_ROWS_INL_H_
