#include "ops/ssd.h"

#include <algorithm>
#include <cassert>
#include <functional>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/ssd.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"
#include "ops/dot-inl.h"
#include "ops/simd-inl.h"
#include "ops/weighted_sum-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {

// Channels [begin, end) of all tokens.
void ConvolveChannels(const float* const* input, const float* weight, size_t width,
                      const float* bias, FloatRows y, size_t begin, size_t end) {
  const hn::ScalableTag<float> df;
  const size_t lanes = hn::Lanes(df);
  for (size_t t = 0; t < y.rows; ++t) {
    for (size_t c = begin; c < end; c += lanes) {
      const bool whole = c + lanes <= end;
      const size_t n = end - c;
      auto sum = whole ? hn::LoadU(df, bias + c) : hn::LoadN(df, bias + c, n);
      for (size_t k = 0; k < width; ++k) {
        const float* w = weight + k * y.cols + c;
        const float* x = input[t + k] + c;
        sum = whole ? hn::MulAdd(hn::LoadU(df, w), hn::LoadU(df, x), sum)
                    : hn::MulAdd(hn::LoadN(df, w, n), hn::LoadN(df, x, n), sum);
      }
      const auto activated = Swish(df, sum, sum);
      if (whole) {
        hn::StoreU(activated, df, y.Row(t) + c);
      } else {
        hn::StoreN(activated, df, y.Row(t) + c, n);
      }
    }
  }
}

// One token: raw, bias, a, previous, dt and decay_sum are [heads]; previous may be nullptr for
// zeros.
void TimeStep(const float* raw, const float* bias, const float* a, const float* previous,
              size_t heads, float* dt, float* decay_sum) {
  const hn::ScalableTag<float> df;
  const size_t lanes = hn::Lanes(df);
  for (size_t h = 0; h < heads; h += lanes) {
    // LoadN and StoreN take a count above the number of lanes for the number of lanes.
    const size_t n = heads - h;
    const auto biased = hn::Add(hn::LoadN(df, raw + h, n), hn::LoadN(df, bias + h, n));
    const auto step = Softplus(df, biased);
    const auto sum = previous == nullptr ? hn::Zero(df) : hn::LoadN(df, previous + h, n);
    hn::StoreN(step, df, dt + h, n);
    hn::StoreN(hn::MulAdd(step, hn::LoadN(df, a + h, n), sum), df, decay_sum + h, n);
  }
}

// Vectors over the tokens of a chunk, however long the machine's vectors are.
using ChunkTag = hn::CappedTag<float, kSsdChunk>;

// The time steps of one head, and what they weigh.
class HeadTimes {
 public:
  // Of the chunk's first `count` tokens.
  HeadTimes(const SsdLog& log, size_t head, size_t count) {
    const FloatRows dt = log.dt(), decay_sum = log.decay_sum();
    for (size_t j = 0; j < kSsdChunk; ++j) {
      dt_[j] = j < count ? dt.Row(j)[head] : 0.0f;
      decay_sum_[j] = j < count ? decay_sum.Row(j)[head] : 0.0f;
    }
  }

  // How much of the chunk's initial state is left after token t.
  float StateDecay(size_t t) const { return ExpOf1(decay_sum_[t]); }

  // weights[j] = exp(s_t - s_j) * dt_j for j <= t; the rest of weights [kSsdChunk] has no meaning.
  void Weigh(size_t t, float* weights) const {
    const ChunkTag d;
    const auto now = hn::Set(d, decay_sum_[t]);
    for (size_t j = 0; j <= t; j += hn::Lanes(d)) {
      const auto decay = ExpOf(d, hn::Sub(now, hn::Load(d, decay_sum_ + j)));
      hn::Store(hn::Mul(decay, hn::Load(d, dt_ + j)), d, weights + j);
    }
  }

 private:
  HWY_ALIGN float dt_[kSsdChunk];
  HWY_ALIGN float decay_sum_[kSsdChunk];
};

// Heads [begin, end) of all tokens.
void OutputsOfHeads(const SsdLog& log, const float* state, ConstFloatRows c, const float* d,
                    size_t first, FloatRows y, size_t begin, size_t end) {
  const SsdShape& shape = log.shape;
  const size_t tokens = y.rows, count = first + tokens;
  const size_t heads_per_group = shape.heads / shape.groups;
  // C_t . B_j for the group at hand, [tokens, kSsdChunk].
  HWY_ALIGN float products[kSsdChunk * kSsdChunk];
  const FloatRows cb(products, tokens, count, kSsdChunk);
  HWY_ALIGN float weights[kSsdChunk];
  for (size_t head = begin; head < end; ++head) {
    const size_t group = head / heads_per_group;
    const ConstFloatRows c_group = c.Columns(group * shape.state_dim, shape.state_dim);
    if (head == begin || head % heads_per_group == 0) {
      const ConstFloatRows b = log.b().Slice(0, count);
      MultiplyRows(b.Columns(group * shape.state_dim, shape.state_dim), c_group, cb);
    }
    const FloatRows out = y.Columns(head * shape.head_dim, shape.head_dim);
    if (state != nullptr) {
      const float* head_state = state + head * shape.head_dim * shape.state_dim;
      MultiplyRows(ConstFloatRows(head_state, shape.head_dim, shape.state_dim), c_group, out);
    } else {
      for (size_t t = 0; t < tokens; ++t) std::fill_n(out.Row(t), shape.head_dim, 0.0f);
    }
    const HeadTimes times(log, head, count);
    const ConstFloatRows x = log.x().Columns(head * shape.head_dim, shape.head_dim);
    for (size_t t = 0; t < tokens; ++t) {
      const size_t now = first + t;
      times.Weigh(now, weights);
      for (size_t j = 0; j <= now; ++j) weights[j] *= cb.Row(t)[j];
      AddWeighted(weights, x.Slice(0, now + 1), times.StateDecay(now), out.Row(t));
      AddWeighted(d + head, x.Slice(now, 1), 1.0f, out.Row(t));
    }
  }
}

// Heads [begin, end).
void AdvanceHeads(const SsdLog& log, const float* state, float* next, size_t begin, size_t end) {
  const SsdShape& shape = log.shape;
  const size_t heads_per_group = shape.heads / shape.groups;
  HWY_ALIGN float weights[kSsdChunk];
  HWY_ALIGN float terms[kSsdChunk];
  for (size_t head = begin; head < end; ++head) {
    const HeadTimes times(log, head, kSsdChunk);
    const float decay = times.StateDecay(kSsdChunk - 1);
    times.Weigh(kSsdChunk - 1, weights);
    const ConstFloatRows b =
        ConstFloatRows(log.b()).Columns(head / heads_per_group * shape.state_dim, shape.state_dim);
    for (size_t i = 0; i < shape.head_dim; ++i) {
      const size_t column = head * shape.head_dim + i;
      for (size_t j = 0; j < kSsdChunk; ++j) terms[j] = weights[j] * log.x().Row(j)[column];
      float* row = next + column * shape.state_dim;
      if (state != nullptr) {
        std::copy_n(state + column * shape.state_dim, shape.state_dim, row);
      } else {
        std::fill_n(row, shape.state_dim, 0.0f);
      }
      AddWeighted(terms, b, decay, row);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace inlay {
namespace {

HWY_EXPORT(ConvolveChannels);
HWY_EXPORT(TimeStep);
HWY_EXPORT(OutputsOfHeads);
HWY_EXPORT(AdvanceHeads);

// Threads take whole multiples of this many channels: four cache lines of floats.
constexpr size_t kChannelGrain = 64;

}  // namespace

void CausalConv1dSilu(const float* const* input, const float* weight, size_t width,
                      const float* bias, FloatRows y, ThreadPool& pool) {
  const auto work = [&](size_t begin, size_t end) {
    HWY_DYNAMIC_DISPATCH(ConvolveChannels)(input, weight, width, bias, y, begin, end);
  };
  pool.Run(y.cols, kChannelGrain, std::cref(work));
}

void SsdTimeSteps(ConstFloatRows raw_dt, const float* bias, const float* a, size_t first,
                  const SsdLog& log) {
  const size_t heads = log.shape.heads;
  assert(raw_dt.cols == heads && first + raw_dt.rows <= kSsdChunk);
  const auto time_step = HWY_DYNAMIC_POINTER(TimeStep);
  const FloatRows dt = log.dt(), decay_sum = log.decay_sum();
  for (size_t t = 0; t < raw_dt.rows; ++t) {
    const size_t row = first + t;
    const float* previous = row == 0 ? nullptr : decay_sum.Row(row - 1);
    time_step(raw_dt.Row(t), bias, a, previous, heads, dt.Row(row), decay_sum.Row(row));
  }
}

void SsdOutputs(const SsdLog& log, const float* state, ConstFloatRows c, const float* d,
                size_t first, FloatRows y, ThreadPool& pool) {
  const SsdShape& shape = log.shape;
  assert(first + y.rows <= kSsdChunk && c.rows == y.rows);
  assert(c.cols == shape.BcDim() && y.cols == shape.Inner());
  assert(shape.heads % shape.groups == 0);
  if (y.rows == 0) return;
  const auto work = [&](size_t begin, size_t end) {
    HWY_DYNAMIC_DISPATCH(OutputsOfHeads)(log, state, c, d, first, y, begin, end);
  };
  pool.Run(shape.heads, 1, std::cref(work));
}

void SsdAdvance(const SsdLog& log, const float* state, float* next, ThreadPool& pool) {
  assert(log.shape.heads % log.shape.groups == 0);
  const auto work = [&](size_t begin, size_t end) {
    HWY_DYNAMIC_DISPATCH(AdvanceHeads)(log, state, next, begin, end);
  };
  pool.Run(log.shape.heads, 1, std::cref(work));
}

}  // namespace inlay
#endif  // HWY_ONCE
