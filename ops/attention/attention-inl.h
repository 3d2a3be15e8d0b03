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
#include <type_traits>

#include "ops/attention/attention_span.h"
#include "ops/cpu/extension-inl.h"
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

// Prefetches n elements that lie `ahead` bytes after p, perhaps in another object: into the
// second-level cache, as the block at hand may fill the first. Rows of bytes, whose blocks are
// small, and slow to convert, are faster from the first.
template <class T>
HWY_INLINE void FetchLines(const T* p, intptr_t ahead, size_t n) {
  const uintptr_t to = reinterpret_cast<uintptr_t>(p) + static_cast<uintptr_t>(ahead);
  for (size_t i = 0; i < n * sizeof(T); i += 64) {
    __builtin_prefetch(reinterpret_cast<const char*>(to + i), /*rw=*/0,
                       /*locality=*/sizeof(T) == 1 ? 3 : 2);
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
    const auto x = hn::Sub(hn::Load(d, scores + j), hn::Set(d, new_largest));
    const auto e = hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, x));  // hn::Exp of NaN is 0
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

// Where the CPU has products of bfloat16, rows of it are multiplied two at a time with queries and
// weights that are rounded to it, too; the sums are floats.
#define INLAY_ATTENTION_IN_PAIRS (HWY_NATIVE_DOT_BF16 && !HWY_HAVE_SCALABLE)
#if INLAY_ATTENTION_IN_PAIRS
using PairTag = hn::ScalableTag<uint32_t>;
// Elements that are loaded at once from each of two rows; their pairs fill two vectors.
constexpr size_t kPairLanes = 2 * hn::MaxLanes(PairTag());
// How often that is done at once, so that the sums of kQueries queries fit the registers.
constexpr size_t kPairLoads = kVectors / 2;
// What is read for a row that does not count.
alignas(64) constexpr uint16_t kZeroRow[kPairLoads * kPairLanes] = {};

// Rounds n floats to bfloat16, two in a word; one that is missing to the last word is zero.
HWY_INLINE void RoundToPairs(const float* from, size_t n, uint32_t* to) {
  const hn::ScalableTag<float> df;
  const hn::Repartition<hwy::bfloat16_t, decltype(df)> d16;
  const size_t lanes = hn::Lanes(df);
  for (size_t i = 0; i < n; i += 2 * lanes) {
    const auto a = hn::LoadN(df, from + i, n - i);
    const auto b = i + lanes < n ? hn::LoadN(df, from + i + lanes, n - i - lanes) : hn::Zero(df);
    const auto pairs = hn::BitCast(PairTag(), hn::OrderedDemote2To(d16, a, b));
    hn::StoreN(pairs, PairTag(), to + i / 2, (n - i + 1) / 2);
  }
}

// SumRows for factors in pairs, from zeros: sums over the pairs of rows [first, last) of
// factors[r][p] with row(2 p) and row(2 p + 1), which point to kLoads * kPairLanes elements, or if
// kPartial to n. Two vectors of sums at a time go to finish, in order.
template <size_t R, size_t kLoads, bool kPartial, class Row, class Finish>
HWY_INLINE void SumPairs(const uint32_t* const* factors, size_t first, size_t last, size_t n,
                         intptr_t ahead, const Row& row, const Finish& finish) {
  static_assert(kLoads == 1 || !kPartial);
  const hn::ScalableTag<float> df;
  const PairTag du;
  const hn::Repartition<uint16_t, PairTag> du16;
  const auto load = [&](const uint16_t* p)
                        HWY_ATTR { return kPartial ? hn::LoadN(du16, p, n) : hn::LoadU(du16, p); };
  hn::Vec<decltype(df)> sum[R][2 * kLoads];
  for (size_t r = 0; r < R; ++r) {
    for (size_t v = 0; v < 2 * kLoads; ++v) sum[r][v] = hn::Zero(df);
  }
  for (size_t p = first; p < last; ++p) {
    const uint16_t* even = row(2 * p);
    const uint16_t* odd = row(2 * p + 1);
    if (ahead != 0) {
      FetchLines(even, ahead, kLoads * kPairLanes);
      FetchLines(odd, ahead, kLoads * kPairLanes);
    }
    hn::Vec<PairTag> x[2 * kLoads];
    for (size_t l = 0; l < kLoads; ++l) {
      const auto a = load(even + l * kPairLanes), b = load(odd + l * kPairLanes);
      x[2 * l] = hn::BitCast(du, hn::InterleaveLower(du16, a, b));
      x[2 * l + 1] = hn::BitCast(du, hn::InterleaveUpper(du16, a, b));
    }
    for (size_t r = 0; r < R; ++r) {
      const auto factor = hn::Set(du, factors[r][p]);
      for (size_t v = 0; v < 2 * kLoads; ++v) {
        sum[r][v] = AddProductsOfBf16(df, x[v], factor, sum[r][v]);
      }
    }
  }
  // Interleaving took 4 elements in turn for one vector and for the other: bit 2 of an element's
  // number chooses the vector, the others are the lane.
  const auto i = hn::Iota(du, 0);
  const auto lane = hn::OrAnd(hn::ShiftLeft<2>(hn::ShiftRight<3>(i)), i, hn::Set(du, 3));
  const auto second = hn::Mul(hn::ShiftRight<2>(hn::And(i, hn::Set(du, 4))),
                              hn::Set(du, static_cast<uint32_t>(hn::Lanes(du))));
  const auto lower = hn::Or(lane, second);
  const auto upper = hn::Add(lower, hn::Set(du, static_cast<uint32_t>(hn::Lanes(du) / 2)));
  const auto lower_lanes = hn::IndicesFromVec(df, lower);
  const auto upper_lanes = hn::IndicesFromVec(df, upper);
  for (size_t r = 0; r < R; ++r) {
    for (size_t l = 0; l < kLoads; ++l) {
      const auto a = sum[r][2 * l], b = sum[r][2 * l + 1];
      finish(r, l * kPairLanes, hn::TwoTablesLookupLanes(df, a, b, lower_lanes),
             hn::TwoTablesLookupLanes(df, a, b, upper_lanes));
    }
  }
}

// Scores for queries in pairs.
template <size_t R>
HWY_INLINE void ScorePairs(const uint32_t* const* q, const uint16_t* keys, size_t dim, size_t begin,
                           size_t end, intptr_t ahead, float* const* scores) {
  const hn::ScalableTag<float> df;
  size_t j = begin / kPairLanes * kPairLanes;
  const auto row = [&](size_t i)
                       HWY_ATTR { return i < dim ? keys + i * kKvBlockRows + j : kZeroRow; };
  const auto finish = [&](size_t r, size_t offset, auto a, auto b) HWY_ATTR {
    hn::Store(a, df, scores[r] + j + offset);
    hn::Store(b, df, scores[r] + j + offset + hn::Lanes(df));
  };
  constexpr size_t kStep = kPairLoads * kPairLanes;
  const size_t pairs = (dim + 1) / 2;
  for (; j + kStep <= kKvBlockRows && j < end; j += kStep) {
    SumPairs<R, kPairLoads, false>(q, 0, pairs, 0, ahead, row, finish);
  }
  for (; j < end; j += kPairLanes) SumPairs<R, 1, false>(q, 0, pairs, 0, ahead, row, finish);
}

// values[r] = factors[r] * values[r] + the sum over the rows [begin, end) of their weights * rows,
// for weights in pairs, those of other rows zero.
template <size_t R>
HWY_INLINE void AddWeightedPairs(const uint32_t* const* weights, const uint16_t* rows, size_t begin,
                                 size_t end, size_t dim, const float* factors, intptr_t ahead,
                                 float* const* values) {
  const hn::ScalableTag<float> df;
  const size_t lanes = hn::Lanes(df);
  size_t i = 0;
  // Rows that do not count may hold NaN, and zero times that is not zero.
  const auto row = [&](size_t j)
                       HWY_ATTR { return begin <= j && j < end ? rows + j * dim + i : kZeroRow; };
  const auto add = [&](size_t r, size_t at, auto sum) HWY_ATTR {
    float* to = values[r] + at;
    hn::StoreU(hn::MulAdd(hn::Set(df, factors[r]), hn::LoadU(df, to), sum), df, to);
  };
  const auto finish = [&](size_t r, size_t offset, auto a, auto b) HWY_ATTR {
    add(r, i + offset, a);
    add(r, i + offset + lanes, b);
  };
  const size_t first = begin / 2, last = (end + 1) / 2;
  constexpr size_t kStep = kPairLoads * kPairLanes;
  for (; i + kStep <= dim; i += kStep) {
    SumPairs<R, kPairLoads, false>(weights, first, last, 0, ahead, row, finish);
  }
  for (; i + kPairLanes <= dim; i += kPairLanes) {
    SumPairs<R, 1, false>(weights, first, last, 0, ahead, row, finish);
  }
  if (i == dim) return;
  const auto add_n = [&](size_t r, size_t at, auto sum) HWY_ATTR {
    if (at >= dim) return;
    float* to = values[r] + at;
    const auto old = hn::LoadN(df, to, dim - at);
    hn::StoreN(hn::MulAdd(hn::Set(df, factors[r]), old, sum), df, to, dim - at);
  };
  const auto finish_n = [&](size_t r, size_t, auto a, auto b) HWY_ATTR {
    add_n(r, i, a);
    add_n(r, i + lanes, b);
  };
  SumPairs<R, 1, true>(weights, first, last, dim - i, ahead, row, finish_n);
}

// AddBlock for rows in pairs.
template <size_t R>
HWY_INLINE void AddBlockInPairs(const AttentionParams& params, const Query* rows,
                                const uint16_t* keys, const uint16_t* block_values, size_t dim,
                                size_t begin, size_t end, intptr_t ahead) {
  HWY_ALIGN float scores[R][kKvBlockRows];
  HWY_ALIGN uint32_t query_pairs[R][kMaxHeadDim / 2];
  HWY_ALIGN uint32_t weight_pairs[R][kKvBlockRows / 2];
  const uint32_t* queries[R];
  float* score_rows[R];
  const uint32_t* weights[R];
  float* values[R];
  float factors[R];
  for (size_t r = 0; r < R; ++r) {
    RoundToPairs(rows[r].q, dim, query_pairs[r]);
    queries[r] = query_pairs[r];
    score_rows[r] = scores[r];
    weights[r] = weight_pairs[r];
    values[r] = rows[r].partial.values();
  }
  ScorePairs<R>(queries, keys, dim, begin, end, ahead, score_rows);
  const size_t from = begin / 2 * 2;
  for (size_t r = 0; r < R; ++r) {
    factors[r] = Weigh(scores[r], begin, end, params, rows[r].partial);
    RoundToPairs(scores[r] + from, end - from, weight_pairs[r] + from / 2);
  }
  AddWeightedPairs<R>(weights, block_values, begin, end, dim, factors, ahead, values);
}
#endif

// Adds the keys [begin, end) of a KV block to the partial results of R queries. Dim is size_t, or
// std::integral_constant<size_t, N> for code compiled for that head dim: the same loops either way,
// and the same bits. `ahead` is the distance in bytes to the next block, to prefetch memory that is
// read only once; or 0.
template <size_t R, class T, class Dim>
HWY_NOINLINE void AddBlock(const AttentionParams& params, const Query* rows, KeysOrValues<T> keys,
                           KeysOrValues<T> block_values, Dim dim, size_t begin, size_t end,
                           intptr_t ahead) {
#if INLAY_ATTENTION_IN_PAIRS
  if constexpr (std::is_same_v<T, hwy::bfloat16_t>) {
    return AddBlockInPairs<R>(params, rows, reinterpret_cast<const uint16_t*>(keys.elements),
                              reinterpret_cast<const uint16_t*>(block_values.elements), dim, begin,
                              end, ahead);
  }
#endif
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
