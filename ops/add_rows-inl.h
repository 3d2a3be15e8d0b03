// Weighted sums of rows for several outputs at once: the small matrix products of recurrent mixers.

// Compiled once per CPU target, hence the toggling guard.
#if defined(INLAY_OPS_ADD_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INLAY_OPS_ADD_ROWS_INL_H_
#undef INLAY_OPS_ADD_ROWS_INL_H_
#else
#define INLAY_OPS_ADD_ROWS_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

namespace {

// A block of sums in registers: how many outputs share the reads of the rows, and how many vectors
// are summed at once for each.
template <size_t kOutputs_, size_t kVectors_>
struct RegisterBlock {
  static constexpr size_t kOutputs = kOutputs_;
  static constexpr size_t kVectors = kVectors_;
};

// 6 x 4 sums, 4 operands and a factor fit 32 registers, 4 x 2 fit 16. Rows that are shorter than
// four vectors use a block of more outputs: with fewer independent sums each multiply-add would
// wait for the one before. Scalable vectors cannot be array elements.
#if HWY_HAVE_SCALABLE
using LongRows = RegisterBlock<1, 1>;
using ShortRows = LongRows;
#elif HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3
using LongRows = RegisterBlock<4, 2>;
using ShortRows = LongRows;
#elif HWY_TARGET_IS_NEON
using LongRows = RegisterBlock<6, 4>;
using ShortRows = LongRows;
#else
using LongRows = RegisterBlock<6, 4>;
using ShortRows = RegisterBlock<8, 2>;
#endif

// Calls f with the register block for rows of `dim` floats.
template <class F>
HWY_INLINE void WithBlockFor(size_t dim, const F& f) {
  if (std::is_same_v<LongRows, ShortRows> ||
      dim >= LongRows::kVectors * hn::Lanes(hn::ScalableTag<float>())) {
    f(LongRows());
  } else {
    f(ShortRows());
  }
}

// One output: out = scale * in + sum over the rows; in and out may be the same.
struct SumOutput {
  const float* in;
  float scale;
  float* out;
};

// A row of integers that stand for `scale` times themselves.
struct ScaledRow {
  const int16_t* values;
  float scale;
};

// A vector of a row's floats, from element i on; if kPartial, only n elements.
template <bool kPartial, class DF>
HWY_INLINE hn::Vec<DF> LoadFloats(DF df, const float* row, size_t i, size_t n) {
  return kPartial ? hn::LoadN(df, row + i, n) : hn::LoadU(df, row + i);
}
template <bool kPartial, class DF>
HWY_INLINE hn::Vec<DF> LoadFloats(DF df, const ScaledRow& row, size_t i, size_t n) {
  const hn::Rebind<int16_t, DF> d16;
  const hn::RebindToSigned<DF> d32;
  const auto v = kPartial ? hn::LoadN(d16, row.values + i, n) : hn::LoadU(d16, row.values + i);
  return hn::Mul(hn::Set(df, row.scale), hn::ConvertTo(df, hn::PromoteTo(d32, v)));
}

// Prefetches what comes 4 KiB after the elements [i, i + count) of a row. Rows of integers are long
// arrays in memory that is read once; those of floats stay in a cache.
HWY_INLINE void PrefetchAfter(const float*, size_t, size_t) {}
HWY_INLINE void PrefetchAfter(const ScaledRow& row, size_t i, size_t count) {
  constexpr size_t kAhead = 4096 / sizeof(int16_t), kLine = 64 / sizeof(int16_t);
  for (size_t at = i; at < i + count; at += kLine) {
    __builtin_prefetch(row.values + at + kAhead, /*rw=*/0, /*locality=*/2);
  }
}

// Computes V vectors of R outputs from element i on; if kPartial, a vector of only n elements.
template <size_t R, size_t V, bool kPartial, class DF, class Factor, class Row>
HWY_INLINE void AddRowsAt(DF df, size_t i, size_t n, const SumOutput* outputs, size_t rows,
                          const Factor& factor, const Row& row) {
  const size_t lanes = hn::Lanes(df);
  const auto load = [&](const auto& from, size_t at)
                        HWY_ATTR { return LoadFloats<kPartial>(df, from, at, n); };
  const auto store = [&](auto v, float* p) HWY_ATTR {
    if constexpr (kPartial) {
      hn::StoreN(v, df, p, n);
    } else {
      hn::StoreU(v, df, p);
    }
  };
#if HWY_HAVE_SCALABLE
  static_assert(R == 1 && V == 1);
  auto sum = hn::Mul(hn::Set(df, outputs[0].scale), load(outputs[0].in, i));
  for (size_t j = 0; j < rows; ++j) {
    sum = hn::MulAdd(hn::Set(df, factor(0, j)), load(row(j), i), sum);
  }
  store(sum, outputs[0].out + i);
  (void)lanes;
#else
  hn::Vec<DF> sum[R][V];
  for (size_t r = 0; r < R; ++r) {
    const auto scale = hn::Set(df, outputs[r].scale);
    for (size_t v = 0; v < V; ++v) sum[r][v] = hn::Mul(scale, load(outputs[r].in, i + v * lanes));
  }
  for (size_t j = 0; j < rows; ++j) {
    hn::Vec<DF> x[V];
    const auto from = row(j);
    PrefetchAfter(from, i, V * lanes);
    for (size_t v = 0; v < V; ++v) x[v] = load(from, i + v * lanes);
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
// R outputs and i < dim: one multiply, then one multiply-add per row, whatever R and V are and
// whichever vector i falls into. factor returns a float, row a pointer to floats or a
// ScaledRow.
template <size_t R, size_t V, class Factor, class Row>
HWY_INLINE void AddRows(const SumOutput* outputs, size_t dim, size_t rows, const Factor& factor,
                        const Row& row) {
  const hn::ScalableTag<float> df;
  const size_t lanes = hn::Lanes(df);
  size_t i = 0;
#if !HWY_HAVE_SCALABLE
  // Of one or two outputs V vectors are too few: each sum would wait for the multiply-add before.
  // Rows of 32 floats and more are common, those of more than 128 are not.
  if constexpr (R == 1 && 4 * V * hn::MaxLanes(df) <= 128) {
    for (; i + 4 * V * lanes <= dim; i += 4 * V * lanes) {
      AddRowsAt<R, 4 * V, false>(df, i, 0, outputs, rows, factor, row);
    }
  }
  if constexpr (R <= 2) {
    for (; i + 2 * V * lanes <= dim; i += 2 * V * lanes) {
      AddRowsAt<R, 2 * V, false>(df, i, 0, outputs, rows, factor, row);
    }
  }
#endif
  for (; i + V * lanes <= dim; i += V * lanes) {
    AddRowsAt<R, V, false>(df, i, 0, outputs, rows, factor, row);
  }
  for (; i + lanes <= dim; i += lanes) AddRowsAt<R, 1, false>(df, i, 0, outputs, rows, factor, row);
  if (i < dim) AddRowsAt<R, 1, true>(df, i, dim - i, outputs, rows, factor, row);
}

// Calls run.operator()<R>(first) so that each of `count` outputs is computed once: kOutputs at a
// time while that many are left, then two, then one.
template <size_t kOutputs, class Run>
HWY_INLINE void ForEachOutputs(size_t count, const Run& run) {
  size_t first = 0;
  for (; first + kOutputs <= count; first += kOutputs) {
    run.template operator()<kOutputs>(first);
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
