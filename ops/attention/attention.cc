// Rows of bfloat16 gain from AVX3_ZEN4, and nothing from AVX3_DL.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (INLAY_UNUSED_TARGETS | HWY_AVX3_DL)

#include "ops/attention/attention.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention/attention.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"
#include "ops/attention/attention-inl.h"
#include "ops/attention/attention_span.h"
#include "ops/cpu/cpu_target.h"
#include "ops/item_finder.h"
#include "ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {
namespace {

// ComputeSpan for the element type T.
template <class T>
void SpanOf(const AttentionCall& call, const TokenRange& tokens, size_t kv_head, size_t span,
            const Partials* partials) {
  const KvView& kv = call.segment.kv;
  const size_t dim = kv.shape.head_dim;
  const size_t keys_bytes = kv.shape.KeysOrValuesBytes();
  const size_t group = call.Group();
  const size_t span_begin = span * kAttentionSpan, span_end = span_begin + kAttentionSpan;
  for (size_t i = 0; i < tokens.count; ++i) {
    for (size_t g = 0; g < group; ++g) {
      partials[i][g].largest() = -std::numeric_limits<float>::infinity();
      partials[i][g].sum() = 0;
      std::fill_n(partials[i][g].values(), dim, 0.0f);
    }
  }
  // The positions of the span that any of the tokens sees.
  const size_t last = std::min(call.End(tokens.first + tokens.count - 1), span_end);
  const size_t first = std::max(call.Begin(tokens.first), span_begin);
  for (size_t b = first / kKvBlockRows; b * kKvBlockRows < last; ++b) {
    const size_t block_begin = b * kKvBlockRows, block_end = block_begin + kKvBlockRows;
    const char* block = static_cast<const char*>(kv.Block(b)) + kv_head * 2 * keys_bytes;
    const KeysOrValues<T> keys(block), values(block + keys_bytes);
    // For a single token, the first heads prefetch the next block; with several, other tokens have
    // it in the cache already.
    intptr_t ahead = call.segment.y.rows == 1 ? call.BytesToNextBlock(b, tokens.first) : 0;
    // Tokens that see the same positions of the block, mostly all of them, share its reads.
    Query queries[kQueries];
    size_t count = 0, begin = 0, end = 0;
    const auto flush = [&]() HWY_ATTR {
      size_t done = 0;
      const auto add = [&]<size_t R>() HWY_ATTR {
        for (; done + R <= count; done += R) {
          AddBlock<R>(call.params, queries + done, keys, values, dim, begin, end, ahead);
          ahead = 0;
        }
      };
      add.template operator()<kQueries>();
      if constexpr (kQueries > 4) add.template operator()<4>();
      if constexpr (kQueries > 2) add.template operator()<2>();
      if constexpr (kQueries > 1) add.template operator()<1>();
      count = 0;
    };
    for (size_t i = 0; i < tokens.count; ++i) {
      const size_t token = tokens.first + i;
      const size_t from = std::max(call.Begin(token), block_begin);
      const size_t to = std::min(call.End(token), block_end);
      if (from >= to) continue;
      if (from - block_begin != begin || to - block_begin != end) flush();
      begin = from - block_begin;
      end = to - block_begin;
      const float* q = call.segment.q.Row(token) + kv_head * group * dim;
      for (size_t g = 0; g < group; ++g) {
        queries[count++] = {q + g * dim, partials[i][g]};
        if (count == kQueries) flush();
      }
    }
    flush();
  }
}

// See ComputeSpanOf.
void ComputeSpan(const AttentionCall& call, const TokenRange& tokens, size_t kv_head, size_t span,
                 const Partials* partials) {
  switch (call.segment.kv.shape.type) {
    case KvType::kF32:
      return SpanOf<float>(call, tokens, kv_head, span, partials);
    case KvType::kF16:
      return SpanOf<hwy::float16_t>(call, tokens, kv_head, span, partials);
    case KvType::kBF16:
      return SpanOf<hwy::bfloat16_t>(call, tokens, kv_head, span, partials);
    case KvType::kQ8:
      return SpanOf<int8_t>(call, tokens, kv_head, span, partials);
  }
}

// Adds the partial results of the next span to those of the spans before, for `count` heads.
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
    // At most 127 in magnitude, up to a rounding error that NearestInt removes.
    const auto q = hn::DemoteTo(d8, hn::DemoteTo(d16, hn::NearestInt(hn::Mul(v, inverse))));
    if (whole) {
      hn::StoreU(q, d8, to + i);
    } else {
      hn::StoreN(q, d8, to + i, n - i);
    }
  }
  return most / 127.0f;
}

// What f16 can hold of v: a finite number beyond its range becomes the largest of it, not an
// infinity, which would make NaN of every later token. What is not finite stays so.
template <class DF, class V = hn::Vec<DF>>
V InRangeOfF16(DF df, V v) {
  const auto most = hn::Set(df, 65504.0f);
  return hn::IfThenElse(hn::And(hn::Gt(hn::Abs(v), most), hn::IsFinite(v)), hn::CopySign(most, v),
                        v);
}

// Writes n floats as the type's elements, rounding to nearest even. Returns their scale: 1
// for types without scales.
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
    const auto bits =
        type == KvType::kF16 ? F16FromFloat(df, InRangeOfF16(df, v)) : Bf16FromFloat(df, v);
    if (whole) {
      hn::StoreU(bits, d16, out + i);
    } else {
      hn::StoreN(bits, d16, out + i, n - i);
    }
  }
  return 1;
}

}  // namespace
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

// Tokens that attend together, so that keys and values are read from memory once for all of them.
// Each needs two Partials, which AttentionScratchFloats includes.
constexpr size_t kTogether = 6;
constexpr size_t kMostTogether = kAmxMostQueries;

ComputeSpanOf ChosenComputeSpan() {
  return ChosenExtension() == Extension::kAmx ? amx::ComputeSpan()
                                              : HWY_DYNAMIC_POINTER(ComputeSpan);
}

// Fewer tasks for each thread are too few to keep all threads busy.
constexpr size_t kFewTasks = 4;

// A kv head and some neighbouring tokens of a segment.
struct Task {
  // The number of tasks of a segment, with `together` tokens each, or fewer for the last ones.
  static size_t Count(const AttentionSegment& segment, size_t together) {
    return (segment.q.rows + together - 1) / together * segment.kv.shape.kv_heads;
  }

  // Task number `index`. Later tokens see more positions, so early and late tokens alternate: then
  // ranges of tasks have equal work.
  Task(const AttentionParams& params, const AttentionSegment& segment, size_t together,
       size_t index)
      : call{params, segment} {
    const size_t ranges = (segment.q.rows + together - 1) / together, i = index % ranges;
    kv_head = index / ranges;
    tokens.first = (i % 2 == 0 ? i / 2 : ranges - 1 - i / 2) * together;
    tokens.count = std::min(together, segment.q.rows - tokens.first);
  }

  void Write(size_t token, Partials totals) const {
    const size_t group = call.Group();
    WriteResult(totals, group, call.segment.y.Row(token) + kv_head * group * totals.head_dim);
  }

  AttentionCall call;
  size_t kv_head;
  TokenRange tokens;
};

// What all of a call's tasks share.
struct AttentionTasks {
  const AttentionParams& params;
  std::span<const AttentionSegment> segments;
  size_t head_dim;
  size_t group;  // query heads that read one kv head
  float* scratch;

  size_t Count(size_t together) const {
    size_t count = 0;
    for (const AttentionSegment& segment : segments) count += Task::Count(segment, together);
    return count;
  }

  // Tokens of a task. With AMX many, which share the packing of rows, as long as each thread gets
  // some tasks.
  size_t Together(size_t threads) const {
    size_t together = kTogether;
    if (ChosenExtension() != Extension::kAmx) return together;
    together = std::max(together, AmxQueries(head_dim) / group);
    while (together > kTogether && Count(together) < kFewTasks * threads) {
      together = std::max(kTogether, together / 2);
    }
    return together;
  }

  // Numbers the tasks (of `together` tokens) of all segments consecutively, with `times` numbers
  // for each, and calls f(i, task) for the numbers i in [begin, end).
  template <class F>
  void ForEach(size_t begin, size_t end, size_t together, size_t times, const F& f) const {
    ItemFinder finder(segments, [=](const AttentionSegment& segment) {
      return times * Task::Count(segment, together);
    });
    for (size_t i = begin; i < end; ++i) {
      const auto [segment, item] = finder.Find(i);
      f(i, Task(params, segment, together, item / times));
    }
  }

  // Partials number i of the scratch memory.
  Partials Scratch(size_t i) const {
    return {scratch + i * group * Partial::Floats(head_dim), head_dim};
  }
};

// One task after the other, each with all its spans.
void AttendByTask(const AttentionTasks& tasks, double time, Team& team) {
  const auto compute_span = ChosenComputeSpan();
  const auto add_partials = HWY_DYNAMIC_POINTER(AddPartials);
  const size_t together = tasks.Together(team.threads());
  const size_t count = tasks.Count(together);
  team.Run(count, UnitsOfChunk(count, time, team.threads()), [&](const Share& share) {
    const auto totals = [&](size_t i) { return tasks.Scratch(2 * together * share.thread + i); };
    tasks.ForEach(share.begin, share.end, together, 1, [&](size_t, const Task& task) {
      const AttentionCall& call = task.call;
      const TokenRange& all = task.tokens;
      const size_t end = all.first + all.count;
      for (size_t span = call.FirstSpan(all.first); span <= call.LastSpan(end - 1); ++span) {
        // The window of later tokens may begin after this span, and earlier tokens may precede it.
        TokenRange tokens = all;
        while (call.LastSpan(tokens.first) < span) ++tokens.first;
        tokens.count = end - tokens.first;
        while (call.FirstSpan(tokens.first + tokens.count - 1) > span) --tokens.count;
        Partials partials[kMostTogether];
        for (size_t i = 0; i < tokens.count; ++i) {
          const size_t token = tokens.first + i;
          const bool is_first = call.FirstSpan(token) == span;
          partials[i] = totals((is_first ? 0 : together) + token - all.first);
        }
        compute_span(call, tokens, task.kv_head, span, partials);
        for (size_t i = 0; i < tokens.count; ++i) {
          const size_t token = tokens.first + i;
          const Partials total = totals(token - all.first);
          if (call.FirstSpan(token) != span) add_partials(partials[i], tasks.group, total);
          if (call.LastSpan(token) == span) task.Write(token, total);
        }
      }
    });
  });
}

// For too few tasks to keep all threads busy: several spans of each task at once, in rounds, with
// the same chain of operations per result. AttentionScratchFloats includes kPerThread spans per
// thread in a round, and a total for each task, of which there are fewer than kFewTasks per thread.
void AttendBySpan(const AttentionTasks& tasks, size_t most_spans, Team& team) {
  constexpr size_t kPerThread = 8;
  const auto compute_span = ChosenComputeSpan();
  const auto add_partials = HWY_DYNAMIC_POINTER(AddPartials);
  const size_t count = tasks.Count(1);
  const size_t at_once = std::max<size_t>(1, kPerThread * team.threads() / count);
  const auto span_of = [&](size_t i, size_t s) { return tasks.Scratch(count + i * at_once + s); };
  for (size_t first = 0; first < most_spans; first += at_once) {
    const size_t now = std::min(at_once, most_spans - first);
    team.Run(count * now, 1, [&](const Share& share) {
      tasks.ForEach(share.begin, share.end, 1, now, [&](size_t i, const Task& task) {
        const AttentionCall& call = task.call;
        const size_t span = first + i % now;
        if (span >= call.Spans(task.tokens.first)) return;
        const Partials to = span == 0 ? tasks.Scratch(i / now) : span_of(i / now, i % now);
        compute_span(call, task.tokens, task.kv_head, call.FirstSpan(task.tokens.first) + span,
                     &to);
      });
    });
    tasks.ForEach(0, count, 1, 1, [&](size_t i, const Task& task) {
      const size_t spans = task.call.Spans(task.tokens.first);
      for (size_t s = first == 0 ? 1 : 0; s < now && first + s < spans; ++s) {
        add_partials(span_of(i, s), tasks.group, tasks.Scratch(i));
      }
      if (spans > first && spans <= first + now) task.Write(task.tokens.first, tasks.Scratch(i));
    });
  }
}

// An estimate in nanoseconds of the time for all tasks on one thread: to read keys and values, or
// to compute with them, whichever is longer.
double TasksTime(const AttentionTasks& tasks) {
  constexpr double kBytes = 20, kMultiplications = 30;  // per nanosecond
  double time = 0;
  for (const AttentionSegment& segment : tasks.segments) {
    if (segment.q.rows == 0) continue;
    const AttentionCall call{tasks.params, segment};
    const auto seen = [&](size_t token) {
      return static_cast<double>(call.End(token) - call.Begin(token));
    };
    const KvShape& shape = segment.kv.shape;
    const double positions = static_cast<double>(segment.q.rows * shape.kv_heads) *
                             (seen(0) + seen(segment.q.rows - 1)) / 2;
    const double elements = 2 * static_cast<double>(shape.head_dim);  // of a position
    time += positions * elements *
            std::max(static_cast<double>(KvTypeBytes(shape.type)) / kBytes,
                     static_cast<double>(tasks.group) / kMultiplications);
  }
  return time;
}

}  // namespace

void StoreKv(ConstFloatRows keys, ConstFloatRows values, size_t first_position, const KvView& kv,
             float* scratch) {
  const KvShape& shape = kv.shape;
  assert(keys.rows == values.rows && keys.cols == shape.kv_heads * shape.head_dim &&
         values.cols == keys.cols);
  const auto store_row = HWY_DYNAMIC_POINTER(StoreRow);
  const size_t dim = shape.head_dim;
  const size_t element = KvTypeBytes(shape.type), scale_bytes = KvScaleBytes(shape.type);
  const size_t scales = kKvBlockRows * dim * element;  // where they begin
  char* converted = reinterpret_cast<char*>(scratch);
  for (size_t t = 0; t < keys.rows; ++t) {
    const size_t row = (first_position + t) % kKvBlockRows;
    char* to = static_cast<char*>(kv.Block((first_position + t) / kKvBlockRows));
    for (size_t h = 0; h < shape.kv_heads; ++h) {
      float scale = store_row(keys.Row(t) + h * dim, dim, shape.type, converted);
      for (size_t i = 0; i < dim; ++i) {
        std::memcpy(to + (i * kKvBlockRows + row) * element, converted + i * element, element);
      }
      std::memcpy(to + scales + row * scale_bytes, &scale, scale_bytes);
      to += shape.KeysOrValuesBytes();
      scale = store_row(values.Row(t) + h * dim, dim, shape.type, to + row * dim * element);
      std::memcpy(to + scales + row * scale_bytes, &scale, scale_bytes);
      to += shape.KeysOrValuesBytes();
    }
  }
}

void Attention(const AttentionParams& params, std::span<const AttentionSegment> segments,
               float* scratch, Team& team) {
  AttentionTasks tasks = {params, segments, 0, 0, scratch};
  size_t most_spans = 0;
  for (const AttentionSegment& segment : segments) {
    const KvShape& shape = segment.kv.shape;
    assert(shape.head_dim <= kMaxHeadDim);
    assert(params.heads % shape.kv_heads == 0);
    assert(segment.q.cols == params.heads * shape.head_dim);
    assert(segment.y.cols == segment.q.cols && segment.y.rows == segment.q.rows);
    if (segment.q.rows == 0) continue;
    tasks.head_dim = shape.head_dim;
    tasks.group = params.heads / shape.kv_heads;
    // No token has more spans than this: a window that moves with the tokens crosses at most one
    // more span border, and only tokens in the middle may see all that is ahead of them.
    const AttentionCall call{params, segment};
    const size_t ahead = std::min(params.ahead, segment.q.rows - 1);
    const size_t more = params.window == 0 ? 0 : 1 + (ahead + kAttentionSpan - 1) / kAttentionSpan;
    for (const size_t token : {size_t{0}, segment.q.rows - 1}) {
      most_spans = std::max(most_spans, call.Spans(token) + more);
    }
  }
  const size_t count = tasks.Count(1);
  if (count == 0) return;
  if (most_spans > 1 && count < kFewTasks * team.threads() && team.threads() > 1) {
    return AttendBySpan(tasks, most_spans, team);
  }
  AttendByTask(tasks, TasksTime(tasks), team);
}

}  // namespace inlay
#endif  // HWY_ONCE
