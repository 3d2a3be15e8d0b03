#include "ops/ssd.h"

#include <algorithm>
#include <cassert>
#include <span>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/ssd.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"
#include "ops/add_rows-inl.h"
#include "ops/dot-inl.h"
#include "ops/item_finder.h"
#include "ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {
namespace {

void TimeSteps(ConstFloatRows raw, const float* bias, FloatRows dt) {
  const hn::ScalableTag<float> df;
  for (size_t t = 0; t < raw.rows; ++t) {
    for (size_t h = 0; h < raw.cols; h += hn::Lanes(df)) {
      // LoadN and StoreN take a count above the number of lanes for the number of lanes.
      const size_t n = raw.cols - h;
      const auto biased = hn::Add(hn::LoadN(df, raw.Row(t) + h, n), hn::LoadN(df, bias + h, n));
      hn::StoreN(Softplus(df, biased), df, dt.Row(t) + h, n);
    }
  }
}

// factor * x + sum, as one operation where the CPU target has it.
HWY_INLINE float MulAdd1(float factor, float x, float sum) {
  const hn::CappedTag<float, 1> d;
  return hn::GetLane(hn::MulAdd(hn::Set(d, factor), hn::Set(d, x), hn::Set(d, sum)));
}

// Vectors over the tokens of a chunk, however long the machine's vectors are.
using ChunkTag = hn::CappedTag<float, kStateChunk>;

// Rows of a chunk, kept ones first, then new ones, each from its own place.
struct ChunkRows {
  ChunkRows(const SsdAppend& append, const SsdChunk& chunk) {
    const ConstFloatRows xbc = append.xbc.Slice(chunk.row, chunk.rows);
    for (size_t j = 0; j < chunk.first; ++j) {
      x[j] = chunk.log.x().Row(j);
      b[j] = chunk.log.b().Row(j);
    }
    for (size_t j = 0; j < chunk.rows; ++j) {
      x[chunk.first + j] = xbc.Row(j);
      b[chunk.first + j] = xbc.Row(j) + append.shape.Inner();
    }
  }

  const float* x[kStateChunk];
  const float* b[kStateChunk];
};

// The time steps of one head, and what they weigh.
class HeadTimes {
 public:
  HeadTimes(const SsdAppend& append, const SsdChunk& chunk, size_t head) {
    const size_t count = chunk.first + chunk.rows;
    float sum = 0;
    for (size_t j = 0; j < count; ++j) {
      if (j < chunk.first) {
        dt_[j] = chunk.log.dt().Row(j)[head];
        sum = chunk.log.decay_sum().Row(j)[head];
      } else {
        dt_[j] = append.dt.Row(chunk.row + j - chunk.first)[head];
        sum = MulAdd1(dt_[j], append.a[head], sum);
        if (chunk.keep) chunk.log.decay_sum().Row(j)[head] = sum;
      }
      decay_sum_[j] = sum;
    }
    std::fill(dt_ + count, dt_ + kStateChunk, 0.0f);
    std::fill(decay_sum_ + count, decay_sum_ + kStateChunk, 0.0f);
  }

  // How much of the chunk's initial state is left after token t.
  float StateDecay(size_t t) const { return ExpOf1(decay_sum_[t]); }

  // weights[j] = exp(s_t - s_j) * dt_j for j <= t; the rest of weights [kStateChunk] has no
  // meaning.
  void Weigh(size_t t, float* weights) const {
    const ChunkTag d;
    const auto now = hn::Set(d, decay_sum_[t]);
    for (size_t j = 0; j <= t; j += hn::Lanes(d)) {
      const auto decay = ExpOf(d, hn::Sub(now, hn::Load(d, decay_sum_ + j)));
      hn::Store(hn::Mul(decay, hn::Load(d, dt_ + j)), d, weights + j);
    }
  }

 private:
  HWY_ALIGN float dt_[kStateChunk];
  HWY_ALIGN float decay_sum_[kStateChunk];
};

// How many of the chunk's new tokens come before the first output.
HWY_INLINE size_t Skipped(const SsdAppend& append, const SsdChunk& chunk) {
  return std::clamp(append.first_output, chunk.row, chunk.row + chunk.rows) - chunk.row;
}

// products[t][j] = C_t . B_j of one group, for the new tokens t of a chunk that have outputs and
// all of its tokens j; row t of products is that of the chunk's new token t.
HWY_NOINLINE void MultiplyBc(const SsdAppend& append, const SsdChunk& chunk, size_t group,
                             float* products) {
  const size_t dim = append.shape.state_dim;
  const size_t count = chunk.first + chunk.rows;
  const size_t skipped = Skipped(append, chunk);
  if (skipped == chunk.rows) return;
  const ChunkRows rows(append, chunk);
  const float* b[kStateChunk];
  for (size_t j = 0; j < count; ++j) b[j] = rows.b[j] + group * dim;
  const ConstFloatRows c =
      append.xbc.Slice(chunk.row + skipped, chunk.rows - skipped)
          .Columns(append.shape.Inner() + append.shape.BcDim() + group * dim, dim);
  MultiplyRows(b, count, c,
               FloatRows(products + skipped * kStateChunk, c.rows, count, kStateChunk));
}

// One head of one chunk; products are those of its group. `terms` [kStateChunk, head_dim] is
// scratch memory.
HWY_NOINLINE void MixHead(const SsdAppend& append, const SsdChunk& chunk, size_t head,
                          const float* products, float* terms) {
  const SsdShape& shape = append.shape;
  const size_t dim = shape.head_dim, state_dim = shape.state_dim;
  const size_t group = head / (shape.heads / shape.groups);
  const ChunkRows rows(append, chunk);
  const float* x[kStateChunk];
  for (size_t j = 0; j < chunk.first + chunk.rows; ++j) x[j] = rows.x[j] + head * dim;
  const auto x_row = [&x](size_t j) { return x[j]; };
  const HeadTimes times(append, chunk, head);
  const float* state = chunk.state == nullptr ? nullptr : chunk.state + head * state_dim * dim;

  const size_t skipped = Skipped(append, chunk);
  const size_t outputs_here = chunk.rows - skipped;
  const ConstFloatRows c =
      append.xbc.Slice(chunk.row + skipped, outputs_here)
          .Columns(shape.Inner() + shape.BcDim() + group * state_dim, state_dim);
  const FloatRows y = outputs_here == 0
                          ? FloatRows()
                          : append.y.Slice(chunk.row + skipped - append.first_output, outputs_here)
                                .Columns(head * dim, dim);
  ForEachOutputs(outputs_here, [&]<size_t R>(size_t first) HWY_ATTR {
    const size_t now = chunk.first + skipped + first;  // the first of the R tokens, in the chunk
    HWY_ALIGN float weights[R][kStateChunk];
    SumOutput outputs[R];
    for (size_t r = 0; r < R; ++r) {
      float* out = y.Row(first + r);
      std::fill_n(out, dim, 0.0f);
      outputs[r] = {out, 1.0f, out};
      times.Weigh(now + r, weights[r]);
      const float* cb = products + (skipped + first + r) * kStateChunk;
      for (size_t j = 0; j <= now + r; ++j) weights[r][j] *= cb[j];
    }
    if (state != nullptr) {
      AddRows<R>(
          outputs, dim, state_dim, [&](size_t r, size_t n) { return c.Row(first + r)[n]; },
          [&](size_t n) { return state + n * dim; });
    }
    for (size_t r = 0; r < R; ++r) outputs[r].scale = times.StateDecay(now + r);
    AddRows<R>(
        outputs, dim, now + 1, [&](size_t r, size_t j) { return weights[r][j]; }, x_row);
    // What each token sees beyond the first one, and its own direct part.
    for (size_t r = 0; r < R; ++r) {
      outputs[r].scale = 1.0f;
      AddRows<1>(
          outputs + r, dim, r + 1,
          [&](size_t, size_t j) { return j < r ? weights[r][now + 1 + j] : append.d[head]; },
          [&](size_t j) { return x[j < r ? now + 1 + j : now + r]; });
    }
  });
  if (chunk.next == nullptr) return;

  HWY_ALIGN float weights[kStateChunk];
  times.Weigh(kStateChunk - 1, weights);
  const float decay = times.StateDecay(kStateChunk - 1);
  for (size_t j = 0; j < kStateChunk; ++j) {
    for (size_t i = 0; i < dim; ++i) terms[j * dim + i] = weights[j] * x[j][i];
  }
  float* next = chunk.next + head * state_dim * dim;
  ForEachOutputs(state_dim, [&]<size_t R>(size_t first) HWY_ATTR {
    SumOutput outputs[R];
    for (size_t r = 0; r < R; ++r) {
      float* out = next + (first + r) * dim;
      if (state == nullptr) std::fill_n(out, dim, 0.0f);
      outputs[r] = {state == nullptr ? out : state + (first + r) * dim, decay, out};
    }
    const size_t column = group * state_dim + first;
    AddRows<R>(
        outputs, dim, kStateChunk, [&](size_t r, size_t j) { return rows.b[j][column + r]; },
        [&](size_t j) { return terms + j * dim; });
  });
}

// One head in all chunks of an append: its states stay in the cache.
void MixChunks(const SsdAppend& append, size_t head, const float* products, float* terms) {
  for (size_t i = 0; i < append.count; ++i) {
    const SsdChunk& chunk = append.chunks[i];
    MixHead(append, chunk, head, products + chunk.row * kStateChunk, terms);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace inlay {
namespace {

HWY_EXPORT(TimeSteps);
HWY_EXPORT(MultiplyBc);
HWY_EXPORT(MixChunks);

}  // namespace

void SsdTimeSteps(ConstFloatRows raw_dt, const float* bias, FloatRows dt) {
  assert(raw_dt.rows == dt.rows && raw_dt.cols == dt.cols);
  HWY_DYNAMIC_DISPATCH(TimeSteps)(raw_dt, bias, dt);
}

void SsdMix(std::span<const SsdAppend> appends, float* scratch, Team& team) {
  if (appends.empty()) return;
  const SsdShape& shape = appends.front().shape;
  size_t tokens = 0, chunks = 0;
  for (const SsdAppend& append : appends) {
    assert(append.xbc.cols == shape.XbcDim());
    assert(append.dt.cols == shape.heads && shape.heads % shape.groups == 0);
    assert(append.row == tokens);
    tokens += append.xbc.rows;
    chunks += append.count;
  }
  // products[g] is [tokens, kStateChunk].
  const auto products = [=](size_t group, size_t row) {
    return scratch + (group * tokens + row) * kStateChunk;
  };
  float* const terms = products(shape.groups, 0);
  // Of so many units with so many multiplications each.
  const auto chunk_of = [&](size_t units, double multiplications) {
    constexpr double kMultiplications = 30;  // per nanosecond
    const double time = static_cast<double>(units) * multiplications / kMultiplications;
    return UnitsOfChunk(units, time, team.threads());
  };

  const auto multiply_bc = HWY_DYNAMIC_POINTER(MultiplyBc);
  const double rows = static_cast<double>(tokens) / static_cast<double>(chunks);  // of a chunk
  const double state_dim = static_cast<double>(shape.state_dim);
  const auto multiply = [&](const Share& share) {
    ItemFinder finder(appends,
                      [&](const SsdAppend& append) { return append.count * shape.groups; });
    for (size_t i = share.begin; i < share.end; ++i) {
      const auto [append, item] = finder.Find(i);
      const size_t group = item % shape.groups;
      const SsdChunk& chunk = append.chunks[item / shape.groups];
      multiply_bc(append, chunk, group, products(group, append.row + chunk.row));
    }
  };
  const size_t group_chunks = chunks * shape.groups;
  team.Run(group_chunks, chunk_of(group_chunks, rows * kStateChunk * state_dim), multiply);

  const auto mix_chunks = HWY_DYNAMIC_POINTER(MixChunks);
  const double append_rows = static_cast<double>(tokens) / static_cast<double>(appends.size());
  const double state = state_dim * static_cast<double>(shape.head_dim);
  const auto mix = [&](const Share& share) {
    for (size_t i = share.begin; i < share.end; ++i) {
      const SsdAppend& append = appends[i / shape.heads];
      const size_t head = i % shape.heads;
      const size_t group = head / (shape.heads / shape.groups);
      mix_chunks(append, head, products(group, append.row),
                 terms + share.thread * kStateChunk * shape.head_dim);
    }
  };
  const size_t heads = appends.size() * shape.heads;
  team.Run(heads, chunk_of(heads, 2 * (append_rows + 2) * state), mix);
}

}  // namespace inlay
#endif  // HWY_ONCE
