// The decays within a chunk of a recurrent mixer.

// Compiled once per CPU target, hence the toggling guard.
#if defined(INLAY_OPS_STATE_CHUNK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INLAY_OPS_STATE_CHUNK_INL_H_
#undef INLAY_OPS_STATE_CHUNK_INL_H_
#else
#define INLAY_OPS_STATE_CHUNK_INL_H_
#endif

#include <algorithm>
#include <cstddef>

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

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#endif  // INLAY_OPS_STATE_CHUNK_INL_H_
