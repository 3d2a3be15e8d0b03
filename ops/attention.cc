#include "ops/attention.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <type_traits>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"
#include "ops/simd-inl.h"

#ifndef INLAY_OPS_ATTENTION_CC_ONCE
#define INLAY_OPS_ATTENTION_CC_ONCE
namespace inlay {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

// What the tasks of one call share.
struct AttentionCall {
  const AttentionParams& params;
  ConstFloatRows q;
  size_t first_position;
  const KvView& kv;
  FloatRows y;

  // Query heads that read one kv head.
  size_t Group() const { return params.heads / kv.shape.kv_heads; }
  // The positions that a token sees, [Begin, End), and the first and last spans that hold them.
  size_t Begin(size_t token) const {
    const size_t end = End(token);
    return params.window == 0 || end < params.window ? 0 : end - params.window;
  }
  size_t End(size_t token) const { return first_position + token + 1; }
  size_t FirstSpan(size_t token) const { return Begin(token) / kAttentionSpan; }
  size_t LastSpan(size_t token) const { return (End(token) - 1) / kAttentionSpan; }
};

// The softmax-weighted sum over some positions for one query head, in memory of Floats(head_dim).
struct Partial {
  float* data;

  static constexpr size_t Floats(size_t head_dim) { return 2 + head_dim; }
  float& largest() const { return data[0]; }  // of the scores
  float& sum() const { return data[1]; }      // of exp(score - largest)
  float* values() const { return data + 2; }  // sums of exp(score - largest) * value
};

// Those of the query heads of one kv head, one after the other.
struct Partials {
  float* data;
  size_t head_dim;

  Partial operator[](size_t g) const { return {data + g * Partial::Floats(head_dim)}; }
};

// The keys or values of one head in one block, as they lie in memory.
template <class T>
struct Half {
  static constexpr bool kScaled = std::is_same_v<T, int8_t>;

  explicit Half(const void* memory) : elements(static_cast<const T*>(memory)) {}
  // Of the rows, where the type has scales.
  const float* scales(size_t dim) const {
    return reinterpret_cast<const float*>(elements + kKvBlockRows * dim);
  }

  const T* elements;
};

}  // namespace
}  // namespace inlay
#endif  // INLAY_OPS_ATTENTION_CC_ONCE

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {

// A block's scores fill whole vectors of this tag, however long the machine's vectors are.
using ScoreTag = hn::CappedTag<float, kKvBlockRows>;

// Query heads that share the reads of keys and values, and vectors that are summed at once for
// each: 4 x 4 sums, 4 operands and a factor fit 32 registers, 4 x 2 fit 16. Scalable vectors cannot
// be array elements.
#if HWY_HAVE_SCALABLE
constexpr size_t kHeads = 1;
constexpr size_t kVectors = 1;
#else
constexpr size_t kHeads = 4;
constexpr size_t kVectors = HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3 ? 2 : 4;
#endif

// out[r] = start(r) + sum over j < count in order of factors[r][j] * rows[j], for R rows of factors
// and V vectors of the rows, `stride` elements apart: the common shape of both products of
// attention. One multiply-add per term.
template <size_t R, size_t V, class DF, class T, class Start, class Finish>
HWY_INLINE void SumRows(DF df, const float* const* factors, const T* rows, size_t stride,
                        size_t count, const Start& start, const Finish& finish) {
  const size_t lanes = hn::Lanes(df);
#if HWY_HAVE_SCALABLE
  static_assert(R == 1 && V == 1);
  auto sum = start(0, 0);
  for (size_t j = 0; j < count; ++j) {
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

// scores[r][j] = q[r] . key j for the keys [begin, end) of a block, and whatever for the other keys
// in the vectors that hold these.
template <size_t R, class T>
HWY_INLINE void Scores(const float* const* q, Half<T> keys, size_t dim, size_t begin, size_t end,
                       float* const* scores) {
  const ScoreTag df;
  const size_t lanes = hn::Lanes(df);
  [[maybe_unused]] const float* scales = keys.scales(dim);
  size_t j = begin / lanes * lanes;
  const auto start = [&](size_t, size_t) HWY_ATTR { return hn::Zero(df); };
  const auto finish = [&](size_t r, size_t offset, auto sum) HWY_ATTR {
    if constexpr (Half<T>::kScaled) sum = hn::Mul(sum, hn::LoadU(df, scales + j + offset));
    hn::Store(sum, df, scores[r] + j + offset);
  };
  for (; j + kVectors * lanes <= kKvBlockRows && j < end; j += kVectors * lanes) {
    SumRows<R, kVectors>(df, q, keys.elements + j, kKvBlockRows, dim, start, finish);
  }
  for (; j < end; j += lanes) {
    SumRows<R, 1>(df, q, keys.elements + j, kKvBlockRows, dim, start, finish);
  }
}

// One step of online softmax: turns the scores of the keys [begin, end) of a block into weights,
// the others into zeros, and returns the factor for what was summed before.
HWY_INLINE float Weigh(float* HWY_RESTRICT scores, size_t begin, size_t end,
                       const AttentionParams& params, Partial partial) {
  const ScoreTag d;
  const hn::RebindToUnsigned<ScoreTag> du;
  const size_t lanes = hn::Lanes(d);
  const size_t first = begin / lanes * lanes;
  auto largest = hn::Set(d, partial.largest());
  for (size_t j = first; j < end; j += lanes) {
    auto s = hn::Mul(hn::Load(d, scores + j), hn::Set(d, params.scale));
    if (params.soft_cap != 0) s = SoftCapOf(d, s, params.soft_cap);
    // What does not count scores the least, whatever it holds: its exponential is zero.
    const auto index = hn::Iota(du, static_cast<uint32_t>(j));
    const auto counts = hn::And(hn::Ge(index, hn::Set(du, static_cast<uint32_t>(begin))),
                                hn::Lt(index, hn::Set(du, static_cast<uint32_t>(end))));
    s = hn::IfThenElse(hn::RebindMask(d, counts), s, hn::Set(d, kLowest));
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
                                size_t dim, const float* factors, float* const* values) {
  const hn::ScalableTag<float> df;
  const size_t lanes = hn::Lanes(df);
  size_t i = 0;
  const auto start = [&](size_t r, size_t offset) HWY_ATTR {
    return hn::Mul(hn::Set(df, factors[r]), hn::LoadU(df, values[r] + i + offset));
  };
  const auto finish = [&](size_t r, size_t offset, auto sum)
                          HWY_ATTR { hn::StoreU(sum, df, values[r] + i + offset); };
  for (; i + kVectors * lanes <= dim; i += kVectors * lanes) {
    SumRows<R, kVectors>(df, weights, rows + i, dim, count, start, finish);
  }
  for (; i + lanes <= dim; i += lanes)
    SumRows<R, 1>(df, weights, rows + i, dim, count, start, finish);
  if (i == dim) return;
  // The same chain for the elements of a vector's part.
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

// Adds the keys [begin, end) of a block to the partials of R query heads that start with head `g`.
template <size_t R, class T>
HWY_NOINLINE void AddBlock(const AttentionParams& params, const float* q, Half<T> keys,
                           Half<T> block_values, size_t dim, size_t begin, size_t end, size_t g,
                           Partials partials) {
  HWY_ALIGN float scores[R][kKvBlockRows];
  const float* queries[R];
  float* score_rows[R];
  const float* weights[R];
  float* values[R];
  float factors[R];
  for (size_t r = 0; r < R; ++r) {
    queries[r] = q + (g + r) * dim;
    score_rows[r] = scores[r];
    weights[r] = scores[r] + begin;
    values[r] = partials[g + r].values();
  }
  Scores<R>(queries, keys, dim, begin, end, score_rows);
  for (size_t r = 0; r < R; ++r) {
    factors[r] = Weigh(scores[r], begin, end, params, partials[g + r]);
    if constexpr (Half<T>::kScaled) ScaleWeights(block_values.scales(dim), begin, end, scores[r]);
  }
  const T* rows = block_values.elements + begin * dim;
  AddWeightedRows<R>(weights, rows, end - begin, dim, factors, values);
}

template <class T>
void SpanOf(const AttentionCall& call, size_t token, size_t kv_head, size_t span,
            Partials partials) {
  const size_t dim = call.kv.shape.head_dim;
  const size_t group = call.Group();
  const float* q = call.q.Row(token) + kv_head * group * dim;
  for (size_t g = 0; g < group; ++g) {
    partials[g].largest() = kLowest;
    partials[g].sum() = 0;
    std::fill_n(partials[g].values(), dim, 0.0f);
  }
  const size_t last = std::min(call.End(token), (span + 1) * kAttentionSpan);
  for (size_t p = std::max(call.Begin(token), span * kAttentionSpan); p < last;) {
    const size_t begin = p % kKvBlockRows;
    const size_t end = std::min(kKvBlockRows, begin + last - p);
    const size_t half = call.kv.shape.HalfBytes();
    const char* block =
        static_cast<const char*>(call.kv.Block(p / kKvBlockRows)) + kv_head * 2 * half;
    const Half<T> keys(block), values(block + half);
    size_t g = 0;
    for (; g + kHeads <= group; g += kHeads) {
      AddBlock<kHeads>(call.params, q, keys, values, dim, begin, end, g, partials);
    }
#if !HWY_HAVE_SCALABLE
    for (; g + 2 <= group; g += 2)
      AddBlock<2>(call.params, q, keys, values, dim, begin, end, g, partials);
    for (; g < group; ++g) AddBlock<1>(call.params, q, keys, values, dim, begin, end, g, partials);
#endif
    p += end - begin;
  }
}

// Computes the partials of one span, for one token and the query heads of one kv head.
void ComputeSpan(const AttentionCall& call, size_t token, size_t kv_head, size_t span,
                 Partials partials) {
  switch (call.kv.shape.type) {
    case KvType::kF32:
      return SpanOf<float>(call, token, kv_head, span, partials);
    case KvType::kF16:
      return SpanOf<hwy::float16_t>(call, token, kv_head, span, partials);
    case KvType::kBF16:
      return SpanOf<hwy::bfloat16_t>(call, token, kv_head, span, partials);
    case KvType::kQ8:
      return SpanOf<int8_t>(call, token, kv_head, span, partials);
  }
}

// Adds the partials of the next span to those of the spans before, for `count` heads.
void AddPartials(Partials next, size_t count, Partials totals) {
  const hn::ScalableTag<float> df;
  const size_t lanes = hn::Lanes(df);
  const size_t dim = totals.head_dim;
  for (size_t g = 0; g < count; ++g) {
    const Partial total = totals[g];
    const float largest = std::max(total.largest(), next[g].largest());
    const float a = ExpOf1(total.largest() - largest), b = ExpOf1(next[g].largest() - largest);
    total.largest() = largest;
    total.sum() = a * total.sum() + b * next[g].sum();
    const auto va = hn::Set(df, a), vb = hn::Set(df, b);
    float* x = total.values();
    const float* y = next[g].values();
    size_t i = 0;
    for (; i + lanes <= dim; i += lanes) {
      const auto scaled = hn::Mul(vb, hn::LoadU(df, y + i));
      hn::StoreU(hn::MulAdd(va, hn::LoadU(df, x + i), scaled), df, x + i);
    }
    if (i < dim) {
      const auto scaled = hn::Mul(vb, hn::LoadN(df, y + i, dim - i));
      const auto sum = hn::MulAdd(va, hn::LoadN(df, x + i, dim - i), scaled);
      hn::StoreN(sum, df, x + i, dim - i);
    }
  }
}

// Writes n floats as int8 multiples of the scale that it returns.
float StoreQ8(const float* from, size_t n, int8_t* to) {
  const hn::ScalableTag<float> df;
  const hn::Rebind<int8_t, decltype(df)> d8;
  const hn::Rebind<int16_t, decltype(df)> d16;
  const size_t lanes = hn::Lanes(df);
  // A maximum may lose a NaN, a sum of magnitudes does not.
  auto largest = hn::Zero(df), sum = hn::Zero(df);
  for (size_t i = 0; i < n; i += lanes) {
    const auto v =
        hn::Abs(i + lanes <= n ? hn::LoadU(df, from + i) : hn::LoadN(df, from + i, n - i));
    largest = hn::Max(largest, v);
    sum = hn::Add(sum, v);
  }
  const float most = hn::ReduceMax(df, largest);
  const float total = hn::ReduceSum(df, sum);
  if (!(most >= 1e-30f && std::isfinite(most) && !std::isnan(total))) {
    const bool finite = std::isfinite(most) && !std::isnan(total);
    std::memset(to, finite ? 0 : 1, n);
    return finite ? 0.0f : std::numeric_limits<float>::quiet_NaN();
  }
  const auto inverse = hn::Set(df, 127.0f / most);
  for (size_t i = 0; i < n; i += lanes) {
    const bool whole = i + lanes <= n;
    const auto v = whole ? hn::LoadU(df, from + i) : hn::LoadN(df, from + i, n - i);
    // At most 127 in magnitude, give or take a rounding that NearestInt takes back.
    const auto q = hn::DemoteTo(d8, hn::DemoteTo(d16, hn::NearestInt(hn::Mul(v, inverse))));
    if (whole) {
      hn::StoreU(q, d8, to + i);
    } else {
      hn::StoreN(q, d8, to + i, n - i);
    }
  }
  return most / 127.0f;
}

// Writes n floats as the type's elements, rounding to nearest even. Returns their scale, which only
// some types have.
float StoreRow(const float* from, size_t n, KvType type, void* to) {
  const hn::ScalableTag<float> df;
  const hn::Rebind<uint16_t, decltype(df)> d16;
  const size_t lanes = hn::Lanes(df);
  if (type == KvType::kQ8) return StoreQ8(from, n, static_cast<int8_t*>(to));
  if (type == KvType::kF32) {
    std::memcpy(to, from, n * sizeof(float));
    return 1;
  }
  auto* out = static_cast<uint16_t*>(to);
  for (size_t i = 0; i < n; i += lanes) {
    const bool whole = i + lanes <= n;
    const auto v = whole ? hn::LoadU(df, from + i) : hn::LoadN(df, from + i, n - i);
    const auto bits = type == KvType::kF16 ? HalfFromFloat(df, v) : Bf16FromFloat(df, v);
    if (whole) {
      hn::StoreU(bits, d16, out + i);
    } else {
      hn::StoreN(bits, d16, out + i, n - i);
    }
  }
  return 1;
}

}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace inlay {
namespace {

HWY_EXPORT(ComputeSpan);
HWY_EXPORT(AddPartials);
HWY_EXPORT(StoreRow);

void WriteResult(Partials totals, size_t count, float* y) {
  for (size_t g = 0; g < count; ++g) {
    const float inverse = 1.0f / totals[g].sum();
    for (size_t i = 0; i < totals.head_dim; ++i) *y++ = totals[g].values()[i] * inverse;
  }
}

// Memory that the calling thread keeps from call to call.
float* Scratch(size_t floats) {
  thread_local std::vector<float> memory;
  if (memory.size() < floats) memory.resize(floats);
  return memory.data();
}

// Tasks are pairs of a kv head and a token; later tokens see more positions, so first and last
// tokens alternate to give ranges of tasks equal work.
struct Task {
  Task(size_t index, size_t tokens) : kv_head(index / tokens) {
    const size_t i = index % tokens;
    token = i % 2 == 0 ? i / 2 : tokens - 1 - i / 2;
  }
  size_t kv_head;
  size_t token;
};

// One task after the other, each with all its spans.
void AttendByTask(const AttentionCall& call, size_t tasks, ThreadPool& pool) {
  const auto compute_span = HWY_DYNAMIC_POINTER(ComputeSpan);
  const auto add_partials = HWY_DYNAMIC_POINTER(AddPartials);
  const size_t dim = call.kv.shape.head_dim, group = call.Group();
  const auto work = [&](size_t first, size_t last) {
    const size_t floats = group * Partial::Floats(dim);
    float* scratch = Scratch(2 * floats);
    const Partials totals = {scratch, dim}, next = {scratch + floats, dim};
    for (size_t i = first; i < last; ++i) {
      const Task task(i, call.q.rows);
      const size_t first_span = call.FirstSpan(task.token);
      compute_span(call, task.token, task.kv_head, first_span, totals);
      for (size_t span = first_span + 1; span <= call.LastSpan(task.token); ++span) {
        compute_span(call, task.token, task.kv_head, span, next);
        add_partials(next, group, totals);
      }
      WriteResult(totals, group, call.y.Row(task.token) + task.kv_head * group * dim);
    }
  };
  pool.Run(tasks, 1, std::cref(work));
}

// The spans of all tasks at once; the same chain of operations per result.
void AttendBySpan(const AttentionCall& call, size_t tasks, size_t first_span, size_t spans,
                  ThreadPool& pool) {
  const auto compute_span = HWY_DYNAMIC_POINTER(ComputeSpan);
  const auto add_partials = HWY_DYNAMIC_POINTER(AddPartials);
  const size_t dim = call.kv.shape.head_dim, group = call.Group();
  const size_t floats = group * Partial::Floats(dim);
  float* scratch = Scratch(tasks * spans * floats);
  const auto partials = [&](size_t i, size_t span) {
    return Partials{scratch + (i * spans + span - first_span) * floats, dim};
  };
  const auto work = [&](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      const Task task(i / spans, call.q.rows);
      const size_t span = first_span + i % spans;
      if (span < call.FirstSpan(task.token) || span > call.LastSpan(task.token)) continue;
      compute_span(call, task.token, task.kv_head, span, partials(i / spans, span));
    }
  };
  pool.Run(tasks * spans, 1, std::cref(work));
  for (size_t i = 0; i < tasks; ++i) {
    const Task task(i, call.q.rows);
    const size_t first = call.FirstSpan(task.token);
    const Partials totals = partials(i, first);
    for (size_t span = first + 1; span <= call.LastSpan(task.token); ++span) {
      add_partials(partials(i, span), group, totals);
    }
    WriteResult(totals, group, call.y.Row(task.token) + task.kv_head * group * dim);
  }
}

}  // namespace

void StoreKv(ConstFloatRows keys, ConstFloatRows values, size_t first_position, const KvView& kv) {
  const KvShape& shape = kv.shape;
  assert(keys.rows == values.rows && keys.cols == shape.kv_heads * shape.head_dim &&
         values.cols == keys.cols);
  const auto store_row = HWY_DYNAMIC_POINTER(StoreRow);
  const size_t dim = shape.head_dim;
  const size_t element = KvTypeBytes(shape.type), scale_bytes = KvScaleBytes(shape.type);
  const size_t scales = kKvBlockRows * dim * element;  // where they begin
  char* converted = reinterpret_cast<char*>(Scratch(dim));
  for (size_t t = 0; t < keys.rows; ++t) {
    const size_t row = (first_position + t) % kKvBlockRows;
    char* half = static_cast<char*>(kv.Block((first_position + t) / kKvBlockRows));
    for (size_t h = 0; h < shape.kv_heads; ++h) {
      float scale = store_row(keys.Row(t) + h * dim, dim, shape.type, converted);
      for (size_t i = 0; i < dim; ++i) {
        std::memcpy(half + (i * kKvBlockRows + row) * element, converted + i * element, element);
      }
      std::memcpy(half + scales + row * scale_bytes, &scale, scale_bytes);
      half += shape.HalfBytes();
      scale = store_row(values.Row(t) + h * dim, dim, shape.type, half + row * dim * element);
      std::memcpy(half + scales + row * scale_bytes, &scale, scale_bytes);
      half += shape.HalfBytes();
    }
  }
}

void Attention(const AttentionParams& params, ConstFloatRows q, size_t first_position,
               const KvView& kv, FloatRows y, ThreadPool& pool) {
  assert(params.heads % kv.shape.kv_heads == 0);
  assert(q.cols == params.heads * kv.shape.head_dim && y.cols == q.cols && y.rows == q.rows);
  if (q.rows == 0) return;
  const AttentionCall call = {params, q, first_position, kv, y};
  const size_t tasks = kv.shape.kv_heads * q.rows;
  const size_t first_span = call.FirstSpan(0);
  const size_t spans = call.LastSpan(q.rows - 1) - first_span + 1;
  // The tasks of a decode step may be too few, or too uneven a number, for the threads.
  const size_t threads = pool.threads();
  if (spans > 1 && tasks < 4 * threads && tasks % threads != 0) {
    AttendBySpan(call, tasks, first_span, spans, pool);
  } else {
    AttendByTask(call, tasks, pool);
  }
}

}  // namespace inlay
#endif  // HWY_ONCE
