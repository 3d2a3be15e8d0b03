// What the kernels of recurrent mixers share: decays within a chunk, products with the state at its
// start, and the state at its end.

// Compiled once per CPU target, hence the toggling guard.
#if defined(INLAY_OPS_STATE_CHUNK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INLAY_OPS_STATE_CHUNK_INL_H_
#undef INLAY_OPS_STATE_CHUNK_INL_H_
#else
#define INLAY_OPS_STATE_CHUNK_INL_H_
#endif

#include <algorithm>
#include <cstddef>

#include "ops/add_rows-inl.h"
#include "ops/simd-inl.h"
#include "ops/state_chunk.h"
#include "ops/views.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

namespace {

// factor * x + sum, as one operation where the CPU target has it.
HWY_INLINE float MulAdd1(float factor, float x, float sum) {
  const hn::CappedTag<float, 1> d;
  return hn::GetLane(hn::MulAdd(hn::Set(d, factor), hn::Set(d, x), hn::Set(d, sum)));
}

// Vectors over the tokens of a chunk, however long the machine's vectors are.
using ChunkTag = hn::CappedTag<float, kStateChunk>;

// The running sums s_t of one head's log decays in a chunk. The factor by which the state decays
// between two tokens is the exponential of a difference: quotients of products would underflow.
class DecaySums {
 public:
  // The sums of the chunk's earlier tokens come from its log, those of the new ones, which are
  // also written there if the chunk keeps them, from dt [tokens, heads] and the head's a: the log
  // decay of a token is dt * a.
  template <class Log>
  DecaySums(const StateChunk<Log>& chunk, ConstFloatRows dt, float a, size_t head) {
    const size_t count = chunk.first + chunk.rows;
    float sum = 0;
    for (size_t j = 0; j < count; ++j) {
      if (j < chunk.first) {
        sum = chunk.log.decay_sum().Row(j)[head];
      } else {
        sum = MulAdd1(dt.Row(chunk.row + j - chunk.first)[head], a, sum);
        if (chunk.keep) chunk.log.decay_sum().Row(j)[head] = sum;
      }
      sums_[j] = sum;
    }
    std::fill(sums_ + count, sums_ + kStateChunk, 0.0f);
  }

  // decays[t] = how much of the chunk's initial state is left after token t, for the tokens of the
  // vectors that hold [begin, end); the rest of decays [kStateChunk] is unspecified.
  void StateDecays(size_t begin, size_t end, float* decays) const {
    const ChunkTag d;
    for (size_t t = begin / hn::Lanes(d) * hn::Lanes(d); t < end; t += hn::Lanes(d)) {
      hn::Store(ExpOf(d, hn::Load(d, sums_ + t)), d, decays + t);
    }
  }

  // weights[j] = exp(s_t - s_j) * factors[j] for j <= t; the rest of weights [kStateChunk] is
  // unspecified. factors is [kStateChunk].
  void Weigh(size_t t, const float* factors, float* weights) const {
    const ChunkTag d;
    const auto now = hn::Set(d, sums_[t]);
    for (size_t j = 0; j <= t; j += hn::Lanes(d)) {
      const auto decay = ExpOf(d, hn::Sub(now, hn::Load(d, sums_ + j)));
      hn::Store(hn::Mul(decay, hn::LoadU(d, factors + j)), d, weights + j);
    }
  }

 private:
  HWY_ALIGN float sums_[kStateChunk];
};

// One head's state [state_dim, dim], visited in blocks of rows that stay in the L1 cache while all
// outputs use them: calls f(begin, count). A state that is nullptr has none.
template <class F>
HWY_INLINE void ForStateBlocks(const float* state, size_t state_dim, size_t dim, const F& f) {
  if (state == nullptr) return;
  constexpr size_t kBytes = size_t{16} << 10;
  const size_t step = std::max<size_t>(1, kBytes / (dim * sizeof(float)));
  for (size_t begin = 0; begin < state_dim; begin += step) {
    f(begin, std::min(step, state_dim - begin));
  }
}

// Adds to R outputs [dim], from number i on, the terms of `count` rows of the state in order: out
// += sum over n of c[r * stride + n] * rows[n].
template <size_t R, class Block, class Output>
HWY_NOINLINE void AddStateRows(const float* rows, size_t count, size_t dim, const float* c,
                               size_t stride, size_t i, const Output& output) {
  SumOutput outputs[R];
  for (size_t r = 0; r < R; ++r) outputs[r] = {output(i + r), 1.0f, output(i + r)};
  AddRows<R, Block::kVectors>(
      outputs, dim, count, [&](size_t r, size_t n) { return c[r * stride + n]; },
      [&](size_t n) { return rows + n * dim; });
}

// The same for all of `outputs` outputs, whose coefficients are `stride` floats apart from c on.
template <class Block, class Output>
HWY_INLINE void AddState(const float* rows, size_t count, size_t dim, const float* c, size_t stride,
                         size_t outputs, const Output& output) {
  ForEachOutputs<Block::kOutputs>(outputs, [&]<size_t R>(size_t i) HWY_ATTR {
    AddStateRows<R, Block>(rows, count, dim, c + i * stride, stride, i, output);
  });
}

// One head of a full chunk: its rows of what the state is made of, and its state.
struct ChunkEnd {
  const float* const* b;  // [kStateChunk] pointers to [state_dim]
  const float* const* x;  // [kStateChunk] pointers to [dim]
  const float* weights;   // [kStateChunk]
  float decay;            // of the state at the chunk's start
  const float* state;     // [state_dim, dim] at the chunk's start; nullptr means zeros
  size_t state_dim;
  size_t dim;
};

// next = decay * state + sum over j in order of b_j (weights_j * x_j)^T. `terms` [kStateChunk, dim]
// is scratch memory.
template <class Block>
HWY_NOINLINE void NextState(const ChunkEnd& end, float* terms, float* next) {
  const size_t dim = end.dim;
  for (size_t j = 0; j < kStateChunk; ++j) {
    for (size_t i = 0; i < dim; ++i) terms[j * dim + i] = end.weights[j] * end.x[j][i];
  }
  ForEachOutputs<Block::kOutputs>(end.state_dim, [&]<size_t R>(size_t first) HWY_ATTR {
    SumOutput outputs[R];
    for (size_t r = 0; r < R; ++r) {
      float* out = next + (first + r) * dim;
      if (end.state == nullptr) std::fill_n(out, dim, 0.0f);
      outputs[r] = {end.state == nullptr ? out : end.state + (first + r) * dim, end.decay, out};
    }
    AddRows<R, Block::kVectors>(
        outputs, dim, kStateChunk, [&](size_t r, size_t j) { return end.b[j][first + r]; },
        [&](size_t j) { return terms + j * dim; });
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#endif  // INLAY_OPS_STATE_CHUNK_INL_H_
