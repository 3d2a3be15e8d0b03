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
#include "ops/head_state-inl.h"
#include "ops/simd-inl.h"
#include "ops/state_chunk-inl.h"
#include "ops/state_chunk_phases.h"

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

// products[t][j] = C_t . B_j of one group, for the new tokens t of a chunk that have outputs and
// all of its tokens j; row t of products is that of the chunk's new token t.
HWY_NOINLINE void MultiplyBc(const SsdAppend& append, const SsdChunk& chunk, size_t group,
                             float* products) {
  const size_t dim = append.shape.state_dim;
  const size_t count = chunk.first + chunk.rows;
  const size_t skipped = chunk.Skipped(append.first_output);
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

// One head of one chunk, whose state at the chunk's start is a State.
template <class State>
class HeadMix {
 public:
  HeadMix(const SsdAppend& append, const SsdChunk& chunk, size_t head, const State& state)
      : append_(append),
        chunk_(chunk),
        head_(head),
        dim_(append.shape.head_dim),
        state_dim_(append.shape.state_dim),
        group_(head / (append.shape.heads / append.shape.groups)),
        rows_(append, chunk),
        sums_(chunk, append.dt, append.a[head], head),
        state_(state),
        first_(chunk.Skipped(append.first_output)),
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
    ForStateBlocks(state_, [&](size_t begin, size_t count) HWY_ATTR {
      AddState<Block>(state_, begin, count, C(0) + begin, append_.xbc.stride, outputs_,
                      [&](size_t i) { return Output(i); });
    });
    HWY_ALIGN float decays[kStateChunk];
    sums_.StateDecays(chunk_.first + first_, chunk_.first + chunk_.rows, decays);
    ForEachOutputs<Block::kOutputs>(outputs_, [&]<size_t R>(size_t i) HWY_ATTR {
      AddTokens<R, Block>(i, decays, products + (first_ + i) * kStateChunk);
    });
  }

  // Computes the state at the chunk's end. `terms` [kStateChunk, head_dim] is scratch memory.
  template <class Block>
  HWY_NOINLINE void EndState(HeadState& states, float* terms) const {
    HWY_ALIGN float weights[kStateChunk];
    sums_.Weigh(kStateChunk - 1, dt_, weights);
    HWY_ALIGN float decays[kStateChunk];
    sums_.StateDecays(kStateChunk - 1, kStateChunk, decays);
    const ChunkEnd end = {.b = b_, .x = x_, .weights = weights, .decay = decays[kStateChunk - 1]};
    states.End<Block>(chunk_, end, terms);
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
  const State state_;            // the head's at the chunk's start
  const size_t first_;           // the first of the chunk's new tokens that has an output
  const size_t outputs_;         // new tokens that have an output
  const float* x_[kStateChunk];  // the head's columns of each token's x
  const float* b_[kStateChunk];  // the head's group's columns of each token's B
};

// One head in all chunks of an append. `scratch` is a thread's.
void MixChunks(const SsdAppend& append, size_t head, const float* products, float* scratch) {
  const size_t dim = append.shape.head_dim;
  float* const terms = scratch;
  HeadState states(head, append.shape.state_dim, dim, scratch + kStateChunk * dim);
  WithBlockFor(dim, [&](auto block) HWY_ATTR {
    using Block = decltype(block);
    for (size_t i = 0; i < append.count; ++i) {
      const SsdChunk& chunk = append.chunks[i];
      states.At<Block>(chunk, [&](const auto& state) HWY_ATTR {
        const HeadMix mix(append, chunk, head, state);
        mix.template Outputs<Block>(products + chunk.row * kStateChunk);
        if (chunk.next != nullptr) mix.template EndState<Block>(states, terms);
      });
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

}  // namespace

void SsdTimeSteps(ConstFloatRows raw_dt, const float* bias, FloatRows dt) {
  assert(raw_dt.rows == dt.rows && raw_dt.cols == dt.cols);
  HWY_DYNAMIC_DISPATCH(TimeSteps)(raw_dt, bias, dt);
}

void SsdMix(std::span<const SsdAppend> appends, float* scratch, Team& team) {
  if (appends.empty()) return;
  const SsdShape& shape = appends.front().shape;
  assert(std::all_of(appends.begin(), appends.end(), [&](const SsdAppend& append) {
    return append.xbc.cols == shape.XbcDim() && append.xbc.rows == append.dt.rows &&
           append.dt.cols == shape.heads && shape.heads % shape.groups == 0;
  }));
  const StateChunkPhases phases(appends, team);
  // The products C_t . B_j of a group [tokens, kStateChunk], from a row on.
  const auto products = [&](size_t group, size_t row) {
    return scratch + (group * phases.tokens() + row) * kStateChunk;
  };
  const auto multiply_bc = HWY_DYNAMIC_POINTER(MultiplyBc);
  phases.ForChunks(shape.groups, kStateChunk * shape.state_dim,
                   [&](const SsdAppend& append, const SsdChunk& chunk, size_t group) {
                     multiply_bc(append, chunk, group, products(group, append.row + chunk.row));
                   });
  const auto mix_chunks = HWY_DYNAMIC_POINTER(MixChunks);
  float* const spaces = products(shape.groups, 0);  // after all products
  const size_t space = (kStateChunk + shape.state_dim) * shape.head_dim;
  phases.ForHeads(shape.heads, 2 * shape.state_dim * shape.head_dim,
                  [&](const SsdAppend& append, size_t head, size_t thread) {
                    const size_t group = head / (shape.heads / shape.groups);
                    mix_chunks(append, head, products(group, append.row), spaces + thread * space);
                  });
}

}  // namespace inlay
#endif  // HWY_ONCE
