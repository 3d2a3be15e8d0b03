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
      // LoadN and StoreN treat a count above the number of lanes as the number of lanes.
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

// The rows of x and B of a chunk: first the earlier ones, in the log, then the new ones.
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

// The time steps of one head in a chunk, and the weights that result from them.
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

  // decays[t] = how much of the chunk's initial state is left after token t, for the tokens of the
  // vectors that hold [begin, end); the rest of decays [kStateChunk] is unspecified.
  void StateDecays(size_t begin, size_t end, float* decays) const {
    const ChunkTag d;
    for (size_t t = begin / hn::Lanes(d) * hn::Lanes(d); t < end; t += hn::Lanes(d)) {
      hn::Store(ExpOf(d, hn::Load(d, decay_sum_ + t)), d, decays + t);
    }
  }

  // weights[j] = exp(s_t - s_j) * dt_j for j <= t; the rest of weights [kStateChunk] is
  // unspecified.
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

// One head of one chunk.
class HeadMix {
 public:
  HeadMix(const SsdAppend& append, const SsdChunk& chunk, size_t head)
      : append_(append),
        chunk_(chunk),
        head_(head),
        dim_(append.shape.head_dim),
        state_dim_(append.shape.state_dim),
        group_(head / (append.shape.heads / append.shape.groups)),
        rows_(append, chunk),
        times_(append, chunk, head),
        state_(chunk.state == nullptr ? nullptr : chunk.state + head * state_dim_ * dim_),
        first_(Skipped(append, chunk)),
        outputs_(chunk.rows - first_) {
    for (size_t j = 0; j < chunk.first + chunk.rows; ++j) x_[j] = rows_.x[j] + head * dim_;
  }

  // Computes the outputs; `products` are those of the head's group.
  template <class Block>
  HWY_NOINLINE void Outputs(const float* products) const {
    if (outputs_ == 0) return;
    for (size_t i = 0; i < outputs_; ++i) std::fill_n(Output(i), dim_, 0.0f);
    // As many rows of the state at a time as stay in the L1 cache while all outputs use them.
    constexpr size_t kBytes = size_t{16} << 10;
    const size_t step = std::max<size_t>(1, kBytes / (dim_ * sizeof(float)));
    for (size_t begin = 0; state_ != nullptr && begin < state_dim_; begin += step) {
      const size_t count = std::min(step, state_dim_ - begin);
      ForEachOutputs<Block::kOutputs>(
          outputs_, [&]<size_t R>(size_t i) HWY_ATTR { AddState<R, Block>(i, begin, count); });
    }
    HWY_ALIGN float decays[kStateChunk];
    times_.StateDecays(chunk_.first + first_, chunk_.first + chunk_.rows, decays);
    ForEachOutputs<Block::kOutputs>(outputs_, [&]<size_t R>(size_t i) HWY_ATTR {
      AddTokens<R, Block>(i, decays, products + (first_ + i) * kStateChunk);
    });
  }

  // Computes the state at the chunk's end. `terms` [kStateChunk, head_dim] is scratch memory.
  template <class Block>
  HWY_NOINLINE void NextState(float* terms) const {
    HWY_ALIGN float weights[kStateChunk];
    times_.Weigh(kStateChunk - 1, weights);
    HWY_ALIGN float decays[kStateChunk];
    times_.StateDecays(kStateChunk - 1, kStateChunk, decays);
    const float decay = decays[kStateChunk - 1];
    for (size_t j = 0; j < kStateChunk; ++j) {
      for (size_t i = 0; i < dim_; ++i) terms[j * dim_ + i] = weights[j] * x_[j][i];
    }
    float* next = chunk_.next + head_ * state_dim_ * dim_;
    ForEachOutputs<Block::kOutputs>(state_dim_, [&]<size_t R>(size_t first) HWY_ATTR {
      SumOutput outputs[R];
      for (size_t r = 0; r < R; ++r) {
        float* out = next + (first + r) * dim_;
        if (state_ == nullptr) std::fill_n(out, dim_, 0.0f);
        outputs[r] = {state_ == nullptr ? out : state_ + (first + r) * dim_, decay, out};
      }
      const size_t column = group_ * state_dim_ + first;
      AddRows<R, Block::kVectors>(
          outputs, dim_, kStateChunk, [&](size_t r, size_t j) { return rows_.b[j][column + r]; },
          [&](size_t j) { return terms + j * dim_; });
    });
  }

 private:
  // Output number i, of the chunk's new token first_ + i.
  float* Output(size_t i) const {
    return append_.y.Row(chunk_.row + first_ + i - append_.first_output) + head_ * dim_;
  }
  const float* C(size_t i) const {
    const SsdShape& shape = append_.shape;
    return append_.xbc.Row(chunk_.row + first_ + i) + shape.Inner() + shape.BcDim() +
           group_ * state_dim_;
  }

  // Adds to R outputs, from number i on, the terms of state^T C_t from `count` rows of the state.
  template <size_t R, class Block>
  HWY_NOINLINE void AddState(size_t i, size_t begin, size_t count) const {
    SumOutput outputs[R];
    for (size_t r = 0; r < R; ++r) outputs[r] = {Output(i + r), 1.0f, Output(i + r)};
    const size_t dim = dim_, stride = append_.xbc.stride;
    const float* c = C(i) + begin;
    const float* rows = state_ + begin * dim;
    AddRows<R, Block::kVectors>(
        outputs, dim, count, [&](size_t r, size_t n) { return c[r * stride + n]; },
        [&](size_t n) { return rows + n * dim; });
  }

  // Multiplies R outputs, from number i on, by the decays of the state and adds the terms of the
  // chunk's tokens up to their own; `products` [R, kStateChunk] are theirs.
  template <size_t R, class Block>
  void AddTokens(size_t i, const float* decays, const float* products) const {
    constexpr size_t V = Block::kVectors;
    const size_t now = chunk_.first + first_ + i;  // the first of the R tokens, in the chunk
    HWY_ALIGN float weights[R][kStateChunk];
    SumOutput outputs[R];
    for (size_t r = 0; r < R; ++r) {
      outputs[r] = {Output(i + r), decays[now + r], Output(i + r)};
      times_.Weigh(now + r, weights[r]);
      const float* cb = products + r * kStateChunk;
      for (size_t j = 0; j <= now + r; ++j) weights[r][j] *= cb[j];
    }
    AddRows<R, V>(
        outputs, dim_, now + 1, [&](size_t r, size_t j) { return weights[r][j]; },
        [&](size_t j) { return x_[j]; });
    // The terms of tokens after the first of the R, and each token's own d * x_t.
    for (size_t r = 0; r < R; ++r) {
      outputs[r].scale = 1.0f;
      AddRows<1, V>(
          outputs + r, dim_, r + 1,
          [&](size_t, size_t j) { return j < r ? weights[r][now + 1 + j] : append_.d[head_]; },
          [&](size_t j) { return x_[j < r ? now + 1 + j : now + r]; });
    }
  }

  const SsdAppend& append_;
  const SsdChunk& chunk_;
  const size_t head_, dim_, state_dim_, group_;
  const ChunkRows rows_;
  const HeadTimes times_;
  const float* state_;           // the head's at the chunk's start; nullptr means zeros
  const size_t first_;           // the first of the chunk's new tokens that has an output
  const size_t outputs_;         // new tokens that have an output
  const float* x_[kStateChunk];  // the head's columns of each token's x
};

// One head in all chunks of an append: its states stay in the cache.
void MixChunks(const SsdAppend& append, size_t head, const float* products, float* terms) {
  WithBlockFor(append.shape.head_dim, [&](auto block) HWY_ATTR {
    for (size_t i = 0; i < append.count; ++i) {
      const SsdChunk& chunk = append.chunks[i];
      const HeadMix mix(append, chunk, head);
      mix.Outputs<decltype(block)>(products + chunk.row * kStateChunk);
      if (chunk.next != nullptr) mix.NextState<decltype(block)>(terms);
    }
  });
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

// The two phases of SsdMix, and what they share.
struct SsdPhases {
  std::span<const SsdAppend> appends;
  const SsdShape& shape;
  float* scratch;
  size_t tokens = 0;  // of all appends
  size_t chunks = 0;  // of all appends

  // Computes C_t . B_j for each group of each chunk.
  void MultiplyBc(Team& team) const {
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
        multiply_bc(append, chunk, group, Products(group, append.row + chunk.row));
      }
    };
    const size_t units = chunks * shape.groups;
    team.Run(units, ChunkOf(units, rows * kStateChunk * state_dim, team), multiply);
  }

  // Computes the outputs and states of each head of each append.
  void MixHeads(Team& team) const {
    const auto mix_chunks = HWY_DYNAMIC_POINTER(MixChunks);
    const double append_rows = static_cast<double>(tokens) / static_cast<double>(appends.size());
    const double state = static_cast<double>(shape.state_dim) * static_cast<double>(shape.head_dim);
    float* const terms = Products(shape.groups, 0);  // after all products
    const auto mix = [&](const Share& share) {
      for (size_t i = share.begin; i < share.end; ++i) {
        const SsdAppend& append = appends[i / shape.heads];
        const size_t head = i % shape.heads;
        const size_t group = head / (shape.heads / shape.groups);
        mix_chunks(append, head, Products(group, append.row),
                   terms + share.thread * kStateChunk * shape.head_dim);
      }
    };
    const size_t units = appends.size() * shape.heads;
    team.Run(units, ChunkOf(units, 2 * (append_rows + 2) * state, team), mix);
  }

 private:
  // The products of a group [tokens, kStateChunk], from a row on.
  float* Products(size_t group, size_t row) const {
    return scratch + (group * tokens + row) * kStateChunk;
  }
  // The chunk of a phase, in units that need `multiplications` each.
  static size_t ChunkOf(size_t units, double multiplications, const Team& team) {
    constexpr double kMultiplications = 30;  // per nanosecond
    const double time = static_cast<double>(units) * multiplications / kMultiplications;
    return UnitsOfChunk(units, time, team.threads());
  }
};

}  // namespace

void SsdTimeSteps(ConstFloatRows raw_dt, const float* bias, FloatRows dt) {
  assert(raw_dt.rows == dt.rows && raw_dt.cols == dt.cols);
  HWY_DYNAMIC_DISPATCH(TimeSteps)(raw_dt, bias, dt);
}

void SsdMix(std::span<const SsdAppend> appends, float* scratch, Team& team) {
  if (appends.empty()) return;
  SsdPhases phases = {appends, appends.front().shape, scratch};
  for (const SsdAppend& append : appends) {
    assert(append.xbc.cols == phases.shape.XbcDim());
    assert(append.dt.cols == phases.shape.heads && phases.shape.heads % phases.shape.groups == 0);
    assert(append.row == phases.tokens);
    phases.tokens += append.xbc.rows;
    phases.chunks += append.count;
  }
  phases.MultiplyBc(team);
  phases.MixHeads(team);
}

}  // namespace inlay
#endif  // HWY_ONCE
