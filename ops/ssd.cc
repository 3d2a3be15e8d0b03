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
#include "ops/state_chunk-inl.h"

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

// Writes the time steps of one head in a chunk to dt [kStateChunk], zeros after them.
void GatherTimeSteps(const SsdAppend& append, const SsdChunk& chunk, size_t head, float* dt) {
  for (size_t j = 0; j < chunk.first; ++j) dt[j] = chunk.log.dt().Row(j)[head];
  for (size_t j = 0; j < chunk.rows; ++j) dt[chunk.first + j] = append.dt.Row(chunk.row + j)[head];
  std::fill(dt + chunk.first + chunk.rows, dt + kStateChunk, 0.0f);
}

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
        sums_(chunk, append.dt, append.a[head], head),
        state_(chunk.state == nullptr ? nullptr : chunk.state + head * state_dim_ * dim_),
        first_(Skipped(append, chunk)),
        outputs_(chunk.rows - first_) {
    GatherTimeSteps(append, chunk, head, dt_);
    for (size_t j = 0; j < chunk.first + chunk.rows; ++j) {
      x_[j] = rows_.x[j] + head * dim_;
      b_[j] = rows_.b[j] + group_ * state_dim_;
    }
  }

  // Computes the outputs; `products` are those of the head's group.
  template <class Block>
  HWY_NOINLINE void Outputs(const float* products) const {
    if (outputs_ == 0) return;
    for (size_t i = 0; i < outputs_; ++i) std::fill_n(Output(i), dim_, 0.0f);
    ForStateBlocks(state_, state_dim_, dim_, [&](size_t begin, size_t count) HWY_ATTR {
      AddState<Block>(state_ + begin * dim_, count, dim_, C(0) + begin, append_.xbc.stride,
                      outputs_, [&](size_t i) { return Output(i); });
    });
    HWY_ALIGN float decays[kStateChunk];
    sums_.StateDecays(chunk_.first + first_, chunk_.first + chunk_.rows, decays);
    ForEachOutputs<Block::kOutputs>(outputs_, [&]<size_t R>(size_t i) HWY_ATTR {
      AddTokens<R, Block>(i, decays, products + (first_ + i) * kStateChunk);
    });
  }

  // Computes the state at the chunk's end. `terms` [kStateChunk, head_dim] is scratch memory.
  template <class Block>
  HWY_NOINLINE void EndState(float* terms) const {
    HWY_ALIGN float weights[kStateChunk];
    sums_.Weigh(kStateChunk - 1, dt_, weights);
    HWY_ALIGN float decays[kStateChunk];
    sums_.StateDecays(kStateChunk - 1, kStateChunk, decays);
    const ChunkEnd end = {.b = b_,
                          .x = x_,
                          .weights = weights,
                          .decay = decays[kStateChunk - 1],
                          .state = state_,
                          .state_dim = state_dim_,
                          .dim = dim_};
    NextState<Block>(end, terms, chunk_.next + head_ * state_dim_ * dim_);
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
      sums_.Weigh(now + r, dt_, weights[r]);
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
  const DecaySums sums_;
  HWY_ALIGN float dt_[kStateChunk];
  const float* state_;           // the head's at the chunk's start; nullptr means zeros
  const size_t first_;           // the first of the chunk's new tokens that has an output
  const size_t outputs_;         // new tokens that have an output
  const float* x_[kStateChunk];  // the head's columns of each token's x
  const float* b_[kStateChunk];  // the head's group's columns of each token's B
};

// One head in all chunks of an append: its states stay in the cache.
void MixChunks(const SsdAppend& append, size_t head, const float* products, float* terms) {
  WithBlockFor(append.shape.head_dim, [&](auto block) HWY_ATTR {
    for (size_t i = 0; i < append.count; ++i) {
      const SsdChunk& chunk = append.chunks[i];
      const HeadMix mix(append, chunk, head);
      mix.Outputs<decltype(block)>(products + chunk.row * kStateChunk);
      if (chunk.next != nullptr) mix.EndState<decltype(block)>(terms);
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
