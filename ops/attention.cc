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
#include "ops/attention-inl.h"
#include "ops/attention_parts.h"
#include "ops/simd-inl.h"

#ifndef INLAY_OPS_ATTENTION_CC_ONCE
#define INLAY_OPS_ATTENTION_CC_ONCE
namespace inlay {
namespace {

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

}  // namespace
}  // namespace inlay
#endif  // INLAY_OPS_ATTENTION_CC_ONCE

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {

template <class T>
void SpanOf(const AttentionCall& call, size_t token, size_t kv_head, size_t span,
            Partials partials) {
  const size_t dim = call.kv.shape.head_dim;
  const size_t group = call.Group();
  const float* q = call.q.Row(token) + kv_head * group * dim;
  for (size_t g = 0; g < group; ++g) {
    partials[g].largest() = -std::numeric_limits<float>::infinity();
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
    p += end - begin;
    // The first heads fetch the next block, unless other tokens have it in the cache already.
    intptr_t ahead = 0;
    if (call.y.rows == 1 && p < last) {
      ahead = reinterpret_cast<intptr_t>(call.kv.Block(p / kKvBlockRows)) -
              reinterpret_cast<intptr_t>(call.kv.Block((p - 1) / kKvBlockRows));
    }
    size_t g = 0;
    const auto add = [&]<size_t R>() HWY_ATTR {
      for (; g + R <= group; g += R) {
        AddBlock<R>(call.params, q, keys, values, dim, begin, end, g, ahead, partials);
        ahead = 0;
      }
    };
    add.template operator()<kHeads>();
    if constexpr (kHeads > 1) {
      add.template operator()<2>();
      add.template operator()<1>();
    }
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
