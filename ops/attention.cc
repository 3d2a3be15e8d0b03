#include "ops/attention.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"
#include "ops/simd-inl.h"
#include "ops/weighted_sum-inl.h"

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

}  // namespace
}  // namespace inlay
#endif  // INLAY_OPS_ATTENTION_CC_ONCE

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {

// A block's scores fill whole vectors of this tag, however long the machine's vectors are.
using ScoreTag = hn::CappedTag<float, kKvBlockRows>;

// scores[j] = q . keys[j] for j < rows; keys [rows, dim]. Four keys at a time hide the latency;
// each score is one accumulator, so that its bits do not depend on the place among the four.
template <class T>
HWY_INLINE void Scores(const float* HWY_RESTRICT q, const T* HWY_RESTRICT keys, size_t rows,
                       size_t dim, float* HWY_RESTRICT scores) {
  const hn::ScalableTag<float> df;
  const size_t lanes = hn::Lanes(df);
  for (size_t j = 0; j < rows; j += 4) {
    // The last rows of a block are repeated rather than rows read that may not be written yet.
    const T* k0 = keys + j * dim;
    const T* k1 = keys + std::min(j + 1, rows - 1) * dim;
    const T* k2 = keys + std::min(j + 2, rows - 1) * dim;
    const T* k3 = keys + std::min(j + 3, rows - 1) * dim;
    auto s0 = hn::Zero(df), s1 = s0, s2 = s0, s3 = s0;
    size_t i = 0;
    for (; i + lanes <= dim; i += lanes) {
      const auto x = hn::LoadU(df, q + i);
      s0 = hn::MulAdd(x, LoadFloat(df, k0 + i), s0);
      s1 = hn::MulAdd(x, LoadFloat(df, k1 + i), s1);
      s2 = hn::MulAdd(x, LoadFloat(df, k2 + i), s2);
      s3 = hn::MulAdd(x, LoadFloat(df, k3 + i), s3);
    }
    if (i < dim) {
      const size_t n = dim - i;
      const auto x = hn::LoadN(df, q + i, n);
      s0 = hn::MulAdd(x, LoadFloatN(df, k0 + i, n), s0);
      s1 = hn::MulAdd(x, LoadFloatN(df, k1 + i, n), s1);
      s2 = hn::MulAdd(x, LoadFloatN(df, k2 + i, n), s2);
      s3 = hn::MulAdd(x, LoadFloatN(df, k3 + i, n), s3);
    }
    // Four scores always fit: `scores` has room for kKvBlockRows.
    scores[j] = hn::ReduceSum(df, s0);
    scores[j + 1] = hn::ReduceSum(df, s1);
    scores[j + 2] = hn::ReduceSum(df, s2);
    scores[j + 3] = hn::ReduceSum(df, s3);
  }
}

// One step of online softmax: adds `rows` positions with the given scores and values to `partial`.
// `scores` has room for kKvBlockRows and is overwritten.
template <class T>
HWY_INLINE void AddBlock(float* HWY_RESTRICT scores, const T* values, size_t rows, size_t dim,
                         const AttentionParams& params, Partial partial) {
  const ScoreTag d;
  const size_t lanes = hn::Lanes(d);
  const size_t padded = hwy::RoundUpTo(rows, lanes);
  std::fill(scores + rows, scores + padded, 0.0f);
  auto largest = hn::Set(d, partial.largest());
  for (size_t j = 0; j < padded; j += lanes) {
    auto s = hn::Mul(hn::Load(d, scores + j), hn::Set(d, params.scale));
    if (params.soft_cap != 0) s = SoftCapOf(d, s, params.soft_cap);
    // Padding scores the least: its exponential is zero.
    s = hn::IfThenElse(hn::FirstN(d, rows - j), s, hn::Set(d, kLowest));
    largest = hn::Max(largest, s);
    hn::Store(s, d, scores + j);
  }
  const float new_largest = hn::ReduceMax(d, largest);
  // Zero for the first block, whose `largest` is -infinity.
  const float factor = ExpOf1(partial.largest() - new_largest);
  auto sum = hn::Zero(d);
  for (size_t j = 0; j < padded; j += lanes) {
    const auto e = hn::Exp(d, hn::Sub(hn::Load(d, scores + j), hn::Set(d, new_largest)));
    sum = hn::Add(sum, e);
    hn::Store(e, d, scores + j);
  }
  partial.sum() = factor * partial.sum() + hn::ReduceSum(d, sum);
  partial.largest() = new_largest;
  AddWeighted(scores, Rows<const T>(values, rows, dim), factor, partial.values());
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
  HWY_ALIGN float scores[kKvBlockRows];
  const size_t end = std::min(call.End(token), (span + 1) * kAttentionSpan);
  for (size_t p = std::max(call.Begin(token), span * kAttentionSpan); p < end;) {
    const size_t block = p / kKvBlockRows;
    const size_t rows = std::min(end, (block + 1) * kKvBlockRows) - p;
    const T* keys = static_cast<const T*>(call.kv.Block(block)) +
                    (kv_head * 2 * kKvBlockRows + p % kKvBlockRows) * dim;
    const T* values = keys + kKvBlockRows * dim;
    for (size_t g = 0; g < group; ++g) {
      Scores(q + g * dim, keys, rows, dim, scores);
      AddBlock(scores, values, rows, dim, call.params, partials[g]);
    }
    p += rows;
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

// Writes n floats as the type's elements, rounding to nearest even.
void StoreRow(const float* from, size_t n, KvType type, void* to) {
  const hn::ScalableTag<float> df;
  const hn::Rebind<uint16_t, decltype(df)> d16;
  const size_t lanes = hn::Lanes(df);
  if (type == KvType::kF32) {
    std::memcpy(to, from, n * sizeof(float));
    return;
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
  const size_t row_bytes = shape.head_dim * KvTypeBytes(shape.type);
  for (size_t t = 0; t < keys.rows; ++t) {
    const size_t position = first_position + t;
    char* row =
        static_cast<char*>(kv.Block(position / kKvBlockRows)) + position % kKvBlockRows * row_bytes;
    for (size_t h = 0; h < shape.kv_heads; ++h) {
      store_row(keys.Row(t) + h * shape.head_dim, shape.head_dim, shape.type, row);
      row += kKvBlockRows * row_bytes;
      store_row(values.Row(t) + h * shape.head_dim, shape.head_dim, shape.type, row);
      row += kKvBlockRows * row_bytes;
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
