#include "ops/delta_rule.h"

#include <algorithm>
#include <cassert>
#include <span>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/delta_rule.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"
#include "ops/add_rows-inl.h"
#include "ops/dot-inl.h"
#include "ops/head_state-inl.h"
#include "ops/state_chunk-inl.h"
#include "ops/state_chunk_phases.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {
namespace {

// The rows of one key head's keys in a chunk: first the earlier ones, in the log, then the new.
void FindKeys(const DeltaAppend& append, const DeltaChunk& chunk, size_t key_head,
              const float** keys) {
  const size_t column = key_head * append.shape.head_dim;
  for (size_t j = 0; j < chunk.first; ++j) keys[j] = chunk.log.keys().Row(j) + column;
  for (size_t j = 0; j < chunk.rows; ++j) {
    keys[chunk.first + j] = append.qkv.Row(chunk.row + j) + append.shape.KeyDim() + column;
  }
}

// Of one key head, for the new tokens t of a chunk and all of its tokens j: of_keys[t][j] =
// k_t . k_j, and for those t that have outputs of_queries[t][j] = q_t . k_j. Row t of either is
// that of the chunk's new token t.
HWY_NOINLINE void MultiplyKeys(const DeltaAppend& append, const DeltaChunk& chunk, size_t key_head,
                               float* of_keys, float* of_queries) {
  const size_t dim = append.shape.head_dim;
  const size_t count = chunk.first + chunk.rows;
  const float* keys[kStateChunk];
  FindKeys(append, chunk, key_head, keys);
  const ConstFloatRows rows = append.qkv.Slice(chunk.row, chunk.rows);
  MultiplyRows(keys, count, rows.Columns(append.shape.KeyDim() + key_head * dim, dim),
               FloatRows(of_keys, chunk.rows, count, kStateChunk));
  const size_t skipped = chunk.Skipped(append.first_output);
  const size_t outputs = chunk.rows - skipped;
  if (outputs == 0) return;
  MultiplyRows(keys, count, rows.Slice(skipped, outputs).Columns(key_head * dim, dim),
               FloatRows(of_queries + skipped * kStateChunk, outputs, count, kStateChunk));
}

// One value head of one chunk, whose state at the chunk's start is a State.
template <class State>
class HeadDelta {
 public:
  HeadDelta(const DeltaAppend& append, const DeltaChunk& chunk, size_t head, const State& state)
      : append_(append),
        chunk_(chunk),
        head_(head),
        key_head_(head % append.shape.key_heads),
        dim_(append.shape.head_dim),
        sums_(chunk, append.dt, append.a[head], head),
        state_(state),
        first_(chunk.Skipped(append.first_output)),
        outputs_(chunk.rows - first_) {
    FindKeys(append, chunk, key_head_, keys_);
    for (size_t j = 0; j < chunk.first; ++j) u_[j] = chunk.log.u().Row(j) + head * dim_;
    for (size_t j = 0; j < chunk.rows; ++j) {
      u_[chunk.first + j] = append.qkv.Row(chunk.row + j) + 2 * append.shape.KeyDim() + head * dim_;
    }
    sums_.StateDecays(chunk.first, chunk.first + chunk.rows, decays_);
  }

  // Computes the corrections and the outputs. `of_keys` and `of_queries` are those of the head's
  // key head; `products` [kStateChunk, head_dim] is scratch memory.
  template <class Block>
  void Mix(const float* of_keys, const float* of_queries, float* products) const {
    if (!state_.IsZero()) MultiplyState<Block>(products);
    for (size_t i = 0; i < chunk_.rows; ++i) BeginCorrection<Block>(i, products + i * dim_);
    ForEachOutputs<Block::kOutputs>(chunk_.rows, [&]<size_t R>(size_t i) HWY_ATTR {
      Correct<R, Block>(i, of_keys + i * kStateChunk);
    });
    if (chunk_.keep) {
      for (size_t i = 0; i < chunk_.rows; ++i) {
        const size_t j = chunk_.first + i;
        std::copy_n(u_[j], dim_, chunk_.log.u().Row(j) + head_ * dim_);
      }
    }
    ForEachOutputs<Block::kOutputs>(outputs_, [&]<size_t R>(size_t i) HWY_ATTR {
      AddTokens<R, Block>(i, of_queries + (first_ + i) * kStateChunk);
    });
  }

  // Computes the state at the chunk's end. `terms` [kStateChunk, head_dim] is scratch memory.
  template <class Block>
  HWY_NOINLINE void EndState(HeadState& states, float* terms) const {
    HWY_ALIGN float ones[kStateChunk];
    std::fill_n(ones, kStateChunk, 1.0f);
    HWY_ALIGN float weights[kStateChunk];
    sums_.Weigh(kStateChunk - 1, ones, weights);
    const ChunkEnd end = {
        .b = keys_, .x = u_, .weights = weights, .decay = decays_[kStateChunk - 1]};
    states.End<Block>(chunk_, end, terms);
  }

 private:
  // The key, query and step size of the chunk's new token i.
  const float* Key(size_t i) const { return keys_[chunk_.first + i]; }
  const float* Query(size_t i) const { return append_.qkv.Row(chunk_.row + i) + key_head_ * dim_; }
  float Beta(size_t i) const { return append_.beta.Row(chunk_.row + i)[head_]; }

  // Output number i, of the chunk's new token first_ + i.
  float* Output(size_t i) const {
    return append_.y.Row(chunk_.row + first_ + i - append_.first_output) + head_ * dim_;
  }

  // Row i of `products` = S^T k of the chunk's new token i, and each output = S^T q.
  template <class Block>
  HWY_NOINLINE void MultiplyState(float* products) const {
    std::fill_n(products, chunk_.rows * dim_, 0.0f);
    for (size_t i = 0; i < outputs_; ++i) std::fill_n(Output(i), dim_, 0.0f);
    const size_t stride = append_.qkv.stride;
    ForStateBlocks(state_, [&](size_t begin, size_t count) HWY_ATTR {
      if (chunk_.rows == 1 && outputs_ == 1) {
        // One token reads the state once, for its query and its key, which follows KeyDim later.
        AddState<Block>(state_, begin, count, Query(0) + begin, append_.shape.KeyDim(), 2,
                        [&](size_t i) { return i == 0 ? Output(0) : products; });
        return;
      }
      AddState<Block>(state_, begin, count, Key(0) + begin, stride, chunk_.rows,
                      [&](size_t i) { return products + i * dim_; });
      if (outputs_ == 0) return;
      AddState<Block>(state_, begin, count, Query(first_) + begin, stride, outputs_,
                      [&](size_t i) { return Output(i); });
    });
  }

  // u = beta * v - beta * decay * product, in v's place; `product` [head_dim] is S^T k.
  template <class Block>
  void BeginCorrection(size_t i, const float* product) const {
    float* u = u_[chunk_.first + i];
    const SumOutput output = {u, Beta(i), u};
    const float factor = -Beta(i) * decays_[chunk_.first + i];
    AddRows<1, Block::kVectors>(
        &output, dim_, state_.IsZero() ? 0 : 1, [&](size_t, size_t) { return factor; },
        [&](size_t) { return product; });
  }

  // Adds to the R corrections from new token i on the terms of the tokens before each of them;
  // `of_keys` [R, kStateChunk] are theirs.
  template <size_t R, class Block>
  HWY_NOINLINE void Correct(size_t i, const float* of_keys) const {
    constexpr size_t V = Block::kVectors;
    const size_t now = chunk_.first + i;  // the first of the R tokens, in the chunk
    HWY_ALIGN float weights[R][kStateChunk];
    SumOutput outputs[R];
    for (size_t r = 0; r < R; ++r) {
      outputs[r] = {u_[now + r], 1.0f, u_[now + r]};
      sums_.Weigh(now + r, of_keys + r * kStateChunk, weights[r]);
      for (size_t j = 0; j < now + r; ++j) weights[r][j] *= -Beta(i + r);
    }
    AddRows<R, V>(
        outputs, dim_, now, [&](size_t r, size_t j) { return weights[r][j]; },
        [&](size_t j) { return u_[j]; });
    for (size_t r = 1; r < R; ++r) {
      AddRows<1, V>(
          outputs + r, dim_, r, [&](size_t, size_t j) { return weights[r][now + j]; },
          [&](size_t j) { return u_[now + j]; });
    }
  }

  // Multiplies R outputs, from number i on, by the decays of the state and adds the terms of the
  // chunk's tokens up to their own; `of_queries` [R, kStateChunk] are theirs.
  template <size_t R, class Block>
  HWY_NOINLINE void AddTokens(size_t i, const float* of_queries) const {
    constexpr size_t V = Block::kVectors;
    const size_t now = chunk_.first + first_ + i;
    HWY_ALIGN float weights[R][kStateChunk];
    SumOutput outputs[R];
    for (size_t r = 0; r < R; ++r) {
      if (state_.IsZero()) std::fill_n(Output(i + r), dim_, 0.0f);
      outputs[r] = {Output(i + r), decays_[now + r], Output(i + r)};
      sums_.Weigh(now + r, of_queries + r * kStateChunk, weights[r]);
    }
    AddRows<R, V>(
        outputs, dim_, now + 1, [&](size_t r, size_t j) { return weights[r][j]; },
        [&](size_t j) { return u_[j]; });
    for (size_t r = 1; r < R; ++r) {
      outputs[r].scale = 1.0f;
      AddRows<1, V>(
          outputs + r, dim_, r, [&](size_t, size_t j) { return weights[r][now + 1 + j]; },
          [&](size_t j) { return u_[now + 1 + j]; });
    }
  }

  const DeltaAppend& append_;
  const DeltaChunk& chunk_;
  const size_t head_, key_head_, dim_;
  const DecaySums sums_;
  const State state_;                    // the head's at the chunk's start
  const size_t first_;                   // the first of the chunk's new tokens that has an output
  const size_t outputs_;                 // new tokens that have an output
  HWY_ALIGN float decays_[kStateChunk];  // what is left of the state after each new token
  const float* keys_[kStateChunk];       // of each token
  float* u_[kStateChunk];                // of each token; before it is computed, its value
};

// One value head in all chunks of an append. `scratch` is a thread's.
void MixHeadChunks(const DeltaAppend& append, size_t head, const float* of_keys,
                   const float* of_queries, float* scratch) {
  const size_t dim = append.shape.head_dim;
  float* const products = scratch;  // and later the terms of the next state
  HeadState states(head, dim, dim, scratch + kStateChunk * dim);
  WithBlockFor(dim, [&](auto block) HWY_ATTR {
    using Block = decltype(block);
    for (size_t i = 0; i < append.count; ++i) {
      const DeltaChunk& chunk = append.chunks[i];
      states.At<Block>(chunk, [&](const auto& state) HWY_ATTR {
        const HeadDelta mix(append, chunk, head, state);
        const size_t row = chunk.row * kStateChunk;
        mix.template Mix<Block>(of_keys + row, of_queries + row, products);
        if (chunk.next != nullptr) mix.template EndState<Block>(states, products);
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

HWY_EXPORT(MultiplyKeys);
HWY_EXPORT(MixHeadChunks);

}  // namespace

void DeltaMix(std::span<const DeltaAppend> appends, float* scratch, Team& team) {
  if (appends.empty()) return;
  const DeltaShape& shape = appends.front().shape;
  assert(std::all_of(appends.begin(), appends.end(), [&](const DeltaAppend& append) {
    return append.qkv.cols == shape.QkvDim() && append.qkv.rows == append.dt.rows &&
           append.dt.cols == shape.value_heads && append.beta.cols == shape.value_heads;
  }));
  const StateChunkPhases phases(appends, team);
  // The products of keys and queries with the keys of a key head [tokens, kStateChunk], from a row
  // on.
  const auto of_keys = [&](size_t key_head, size_t row) {
    return scratch + (key_head * phases.tokens() + row) * kStateChunk;
  };
  const auto of_queries = [&](size_t key_head, size_t row) {
    return of_keys(shape.key_heads + key_head, row);
  };
  const auto multiply_keys = HWY_DYNAMIC_POINTER(MultiplyKeys);
  phases.ForChunks(shape.key_heads, 2 * kStateChunk * shape.head_dim,
                   [&](const DeltaAppend& append, const DeltaChunk& chunk, size_t key_head) {
                     const size_t row = append.row + chunk.row;
                     multiply_keys(append, chunk, key_head, of_keys(key_head, row),
                                   of_queries(key_head, row));
                   });
  const auto mix_chunks = HWY_DYNAMIC_POINTER(MixHeadChunks);
  float* const spaces = of_keys(2 * shape.key_heads, 0);  // after all products
  const size_t space = (kStateChunk + shape.head_dim) * shape.head_dim;
  phases.ForHeads(shape.value_heads, 3 * shape.head_dim * shape.head_dim,
                  [&](const DeltaAppend& append, size_t head, size_t thread) {
                    const size_t key_head = head % shape.key_heads;
                    mix_chunks(append, head, of_keys(key_head, append.row),
                               of_queries(key_head, append.row), spaces + thread * space);
                  });
}

}  // namespace inlay
#endif  // HWY_ONCE
