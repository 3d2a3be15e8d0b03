// The inner loops of attention: one KV block for some query heads.

// Compiled once per CPU target, hence the toggling guard.
#if defined(INLAY_OPS_ATTENTION_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INLAY_OPS_ATTENTION_ATTENTION_INL_H_
#undef INLAY_OPS_ATTENTION_ATTENTION_INL_H_
#else
#define INLAY_OPS_ATTENTION_ATTENTION_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <limits>

#include "hwy/cache_control.h"
#include "ops/attention/attention.h"
#include "ops/attention/attention_types.h"
#include "ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

namespace {

// A KV block's scores fill whole vectors of this tag, however long the machine's vectors are.
using ScoreTag = hn::CappedTag<float, kKvBlockRows>;

// Queries that share the reads of keys and values, and vectors that are summed at once for each:
// 6 x 4 sums, 4 operands and a factor fit 32 registers, 6 x 2 fit 16. Scalable vectors cannot be
// array elements.
#if HWY_HAVE_SCALABLE
constexpr size_t kQueries = 1;
constexpr size_t kVectors = 1;
#else
constexpr size_t kQueries = 6;
constexpr size_t kVectors = HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3 ? 2 : 4;
#endif

// One query head of a token, and its partial result so far.
struct Query {
  const float* q;  // [head_dim]
  Partial partial;
};

// Prefetches n elements that lie `ahead` bytes after p, perhaps in another object.
template <class T>
HWY_INLINE void FetchLines(const T* p, intptr_t ahead, size_t n) {
  const uintptr_t to = reinterpret_cast<uintptr_t>(p) + static_cast<uintptr_t>(ahead);
  for (size_t i = 0; i < n * sizeof(T); i += 64) {
    hwy::Prefetch(reinterpret_cast<const char*>(to + i));
  }
}

// out[r] = start(r) + sum over j < count in order of factors[r][j] * rows[j], for R rows of factors
// and V vectors of the rows, `stride` elements apart: the common shape of both products of
// attention. One multiply-add per term. Unless `ahead` is 0, prefetches what lies that many bytes
// after what it reads.
template <size_t R, size_t V, class DF, class T, class Start, class Finish>
HWY_INLINE void SumRows(DF df, const float* const* factors, const T* rows, size_t stride,
                        size_t count, intptr_t ahead, const Start& start, const Finish& finish) {
  const size_t lanes = hn::Lanes(df);
#if HWY_HAVE_SCALABLE
  static_assert(R == 1 && V == 1);
  auto sum = start(0, 0);
  for (size_t j = 0; j < count; ++j) {
    if (ahead != 0) FetchLines(rows + j * stride, ahead, lanes);
    sum = hn::MulAdd(hn::Set(df, factors[0][j]), LoadFloat(df, rows + j * stride), sum);
  }
  finish(0, 0, sum);
  (void)lanes;
#else
  hn::Vec<DF> sum[R][V];
  for (size_t r = 0; r < R; ++r) {
    for (size_t v = 0; v < V; ++v) sum[r][v] = start(r, v * lanes);
  }
  for (size_t j = 0; j < count; ++j) {
    if (ahead != 0) FetchLines(rows + j * stride, ahead, V * lanes);
    hn::Vec<DF> x[V];
    for (size_t v = 0; v < V; ++v) x[v] = LoadFloat(df, rows + j * stride + v * lanes);
    for (size_t r = 0; r < R; ++r) {
      const auto factor = hn::Set(df, factors[r][j]);
      for (size_t v = 0; v < V; ++v) sum[r][v] = hn::MulAdd(factor, x[v], sum[r][v]);
    }
  }
  for (size_t r = 0; r < R; ++r) {
    for (size_t v = 0; v < V; ++v) finish(r, v * lanes, sum[r][v]);
  }
#endif
}

// scores[r][j] = q[r] . key j for the keys [begin, end) of a KV block. The other scores in the
// vectors that hold these are unspecified.
template <size_t R, class T>
HWY_INLINE void Scores(const float* const* q, KeysOrValues<T> keys, size_t dim, size_t begin,
                       size_t end, intptr_t ahead, float* const* scores) {
  const ScoreTag df;
  const size_t lanes = hn::Lanes(df);
  [[maybe_unused]] const float* scales = keys.scales(dim);
  size_t j = begin / lanes * lanes;
  const auto start = [&](size_t, size_t) HWY_ATTR { return hn::Zero(df); };
  const auto finish = [&](size_t r, size_t offset, auto sum) HWY_ATTR {
    if constexpr (KeysOrValues<T>::kScaled) sum = hn::Mul(sum, hn::LoadU(df, scales + j + offset));
    hn::Store(sum, df, scores[r] + j + offset);
  };
  for (; j + kVectors * lanes <= kKvBlockRows && j < end; j += kVectors * lanes) {
    SumRows<R, kVectors>(df, q, keys.elements + j, kKvBlockRows, dim, ahead, start, finish);
  }
  for (; j < end; j += lanes) {
    SumRows<R, 1>(df, q, keys.elements + j, kKvBlockRows, dim, ahead, start, finish);
  }
}

// One step of online softmax: turns the scores of the keys [begin, end) of a KV block into
// weights, the others into zeros, and returns the factor that rescales the earlier sums.
HWY_INLINE float Weigh(float* HWY_RESTRICT scores, size_t begin, size_t end,
                       const AttentionParams& params, Partial partial) {
  const ScoreTag d;
  const hn::RebindToUnsigned<ScoreTag> du;
  const size_t lanes = hn::Lanes(d);
  const size_t first = begin / lanes * lanes;
  const auto lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto largest = hn::Set(d, partial.largest());
  for (size_t j = first; j < end; j += lanes) {
    auto s = hn::Mul(hn::Load(d, scores + j), hn::Set(d, params.scale));
    if (params.soft_cap != 0) s = SoftCapOf(d, s, params.soft_cap);
    // A key outside [begin, end) gets the score -infinity, whatever was stored: its weight is zero.
    const auto index = hn::Iota(du, static_cast<uint32_t>(j));
    const auto counts = hn::And(hn::Ge(index, hn::Set(du, static_cast<uint32_t>(begin))),
                                hn::Lt(index, hn::Set(du, static_cast<uint32_t>(end))));
    s = hn::IfThenElse(hn::RebindMask(d, counts), s, lowest);
    largest = hn::Max(largest, s);
    hn::Store(s, d, scores + j);
  }
  const float new_largest = hn::ReduceMax(d, largest);
  // Zero for the first block, whose `largest` is -infinity.
  const float factor = ExpOf1(partial.largest() - new_largest);
  auto sum = hn::Zero(d);
  for (size_t j = first; j < end; j += lanes) {
    const auto e = hn::Exp(d, hn::Sub(hn::Load(d, scores + j), hn::Set(d, new_largest)));
    sum = hn::Add(sum, e);
    hn::Store(e, d, scores + j);
  }
  partial.sum() = factor * partial.sum() + hn::ReduceSum(d, sum);
  partial.largest() = new_largest;
  return factor;
}

// values[r] = factor[r] * values[r] + sum over j < count of weights[r][j] * rows[j], rows [count,
// dim].
template <size_t R, class T>
HWY_INLINE void AddWeightedRows(const float* const* weights, const T* rows, size_t count,
                                size_t dim, const float* factors, intptr_t ahead,
                                float* const* values) {
  const hn::ScalableTag<float> df;
  const size_t lanes = hn::Lanes(df);
  size_t i = 0;
  const auto start = [&](size_t r, size_t offset) HWY_ATTR {
    return hn::Mul(hn::Set(df, factors[r]), hn::LoadU(df, values[r] + i + offset));
  };
  const auto finish = [&](size_t r, size_t offset, auto sum)
                          HWY_ATTR { hn::StoreU(sum, df, values[r] + i + offset); };
  for (; i + kVectors * lanes <= dim; i += kVectors * lanes) {
    SumRows<R, kVectors>(df, weights, rows + i, dim, count, ahead, start, finish);
  }
  for (; i + lanes <= dim; i += lanes)
    SumRows<R, 1>(df, weights, rows + i, dim, count, ahead, start, finish);
  if (i == dim) return;
  // The same chain of operations for the last, partial vector.
  const size_t n = dim - i;
  for (size_t r = 0; r < R; ++r) {
    auto sum = hn::Mul(hn::Set(df, factors[r]), hn::LoadN(df, values[r] + i, n));
    for (size_t j = 0; j < count; ++j) {
      sum = hn::MulAdd(hn::Set(df, weights[r][j]), LoadFloatN(df, rows + j * dim + i, n), sum);
    }
    hn::StoreN(sum, df, values[r] + i, n);
  }
}

// Multiplies the weights of the vectors that hold [begin, end) by the values' scales.
HWY_INLINE void ScaleWeights(const float* scales, size_t begin, size_t end,
                             float* HWY_RESTRICT weights) {
  const ScoreTag df;
  const size_t lanes = hn::Lanes(df);
  for (size_t j = begin / lanes * lanes; j < end; j += lanes) {
    hn::Store(hn::Mul(hn::Load(df, weights + j), hn::LoadU(df, scales + j)), df, weights + j);
  }
}

// Adds the keys [begin, end) of a KV block to the partial results of R queries. Dim is size_t, or
// std::integral_constant<size_t, N> for code compiled for that head dim: the same loops either way,
// and the same bits. `ahead` is the distance in bytes to the next block, to prefetch memory that is
// read only once; or 0.
template <size_t R, class T, class Dim>
HWY_NOINLINE void AddBlock(const AttentionParams& params, const Query* rows, KeysOrValues<T> keys,
                           KeysOrValues<T> block_values, Dim dim, size_t begin, size_t end,
                           intptr_t ahead) {
  HWY_ALIGN float scores[R][kKvBlockRows];
  const float* queries[R];
  float* score_rows[R];
  const float* weights[R];
  float* values[R];
  float factors[R];
  for (size_t r = 0; r < R; ++r) {
    queries[r] = rows[r].q;
    score_rows[r] = scores[r];
    weights[r] = scores[r] + begin;
    values[r] = rows[r].partial.values();
  }
  Scores<R>(queries, keys, dim, begin, end, ahead, score_rows);
  for (size_t r = 0; r < R; ++r) {
    factors[r] = Weigh(scores[r], begin, end, params, rows[r].partial);
    if constexpr (KeysOrValues<T>::kScaled)
      ScaleWeights(block_values.scales(dim), begin, end, scores[r]);
  }
  AddWeightedRows<R>(weights, block_values.elements + begin * dim, end - begin, dim, factors, ahead,
                     values);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#endif  // INLAY_OPS_ATTENTION_ATTENTION_INL_H_
