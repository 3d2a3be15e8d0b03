// The state of one head of a recurrent mixer: products with the one at a chunk's start, and the one
// at its end.

// Compiled once per CPU target, hence the toggling guard.
#if defined(INLAY_OPS_HEAD_STATE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INLAY_OPS_HEAD_STATE_INL_H_
#undef INLAY_OPS_HEAD_STATE_INL_H_
#else
#define INLAY_OPS_HEAD_STATE_INL_H_
#endif

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "ops/add_rows-inl.h"
#include "ops/simd-inl.h"
#include "ops/state_chunk.h"
#include "ops/state_type.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

namespace {

// A state [rows, dim] of floats. Without memory it is zeros.
class F32State {
 public:
  F32State(const float* values, size_t rows, size_t dim)
      : values_(values), rows_(rows), dim_(dim) {}

  bool IsZero() const { return values_ == nullptr; }
  size_t rows() const { return rows_; }
  size_t dim() const { return dim_; }
  HWY_INLINE const float* Row(size_t n) const { return values_ + n * dim_; }

 private:
  const float* values_;
  size_t rows_, dim_;
};

// A state [rows, dim] of StateType::kQ16, in the order of StateMatrixBytes.
class Q16State {
 public:
  Q16State(const std::byte* memory, size_t rows, size_t dim)
      : scales_(reinterpret_cast<const float*>(memory)),
        values_(reinterpret_cast<const int16_t*>(memory + rows * sizeof(float))),
        rows_(rows),
        dim_(dim) {}

  bool IsZero() const { return false; }
  size_t rows() const { return rows_; }
  size_t dim() const { return dim_; }
  HWY_INLINE ScaledRow Row(size_t n) const { return {values_ + n * dim_, scales_[n]}; }

  // Writes all rows as floats to `to` [rows, dim].
  void Widen(float* to) const {
    const hn::ScalableTag<float> df;
    const size_t lanes = hn::Lanes(df);
    for (size_t n = 0; n < rows_; ++n, to += dim_) {
      const ScaledRow row = {values_ + n * dim_, scales_[n]};
      size_t i = 0;
      for (; i + lanes <= dim_; i += lanes) {
        hn::StoreU(LoadFloats<false>(df, row, i, lanes), df, to + i);
      }
      if (i < dim_) hn::StoreN(LoadFloats<true>(df, row, i, dim_ - i), df, to + i, dim_ - i);
    }
  }

 private:
  const float* scales_;
  const int16_t* values_;
  size_t rows_, dim_;
};

// Rounds a row [dim] to multiples of a scale, which it returns, and stores the integers that the
// scale is multiplied by. A row with a value that is not finite becomes NaN; one of values so small
// that their scale would be subnormal becomes zeros.
HWY_INLINE float RoundRowToSteps(float* row, size_t dim, int16_t* rounded) {
  constexpr float kSteps = 32767;
  const hn::ScalableTag<float> df;
  const hn::RebindToSigned<decltype(df)> d32;
  const hn::RebindToUnsigned<decltype(df)> du32;
  const hn::Rebind<int16_t, decltype(df)> d16;
  const hn::RebindToUnsigned<decltype(d16)> du16;
  const size_t lanes = hn::Lanes(df);
  const size_t whole = dim / lanes * lanes;
  // The bits of magnitudes, as integers, have the same order, and those of NaN are above all.
  auto bits = hn::BitCast(d32, hn::Abs(hn::LoadN(df, row + whole, dim - whole)));
  for (size_t i = 0; i < whole; i += lanes) {
    bits = hn::Max(bits, hn::BitCast(d32, hn::Abs(hn::LoadU(df, row + i))));
  }
  const float max = hn::GetLane(hn::BitCast(df, hn::Set(d32, hn::ReduceMax(d32, bits))));
  if (HWY_UNLIKELY(!(max >= kSteps * FLT_MIN && max <= FLT_MAX))) {
    const float scale = max <= FLT_MAX ? 0.0f : NAN;
    std::fill_n(rounded, dim, int16_t{0});
    std::fill_n(row, dim, scale);
    return scale;
  }
  const float scale = max * (1 / kSteps);
  // Floats near this number are a step of 1 apart, and their lowest bits count the steps.
  const auto magic = hn::Set(df, 1.5f * (1 << 23));
  const auto inverse = hn::Set(df, kSteps / max);
  const auto step = hn::Set(df, scale);
  const auto integers = [&](auto v) HWY_ATTR {
    return hn::BitCast(d16, hn::TruncateTo(du16, hn::BitCast(du32, v)));
  };
  for (size_t i = 0; i < whole; i += lanes) {
    const auto v = hn::MulAdd(hn::LoadU(df, row + i), inverse, magic);
    hn::StoreU(integers(v), d16, rounded + i);
    hn::StoreU(hn::Mul(step, hn::Sub(v, magic)), df, row + i);
  }
  if (whole < dim) {
    const auto v = hn::MulAdd(hn::LoadN(df, row + whole, dim - whole), inverse, magic);
    hn::StoreN(integers(v), d16, rounded + whole, dim - whole);
    hn::StoreN(hn::Mul(step, hn::Sub(v, magic)), df, row + whole, dim - whole);
  }
  return scale;
}

// Rounds a state [rows, dim] to one of StateType::kQ16, which is written to `to`.
HWY_NOINLINE void RoundState(float* state, size_t rows, size_t dim, std::byte* to) {
  auto* const scales = reinterpret_cast<float*>(to);
  auto* const values = reinterpret_cast<int16_t*>(to + rows * sizeof(float));
  for (size_t n = 0; n < rows; ++n) {
    scales[n] = RoundRowToSteps(state + n * dim, dim, values + n * dim);
  }
}

// Visits a state in blocks of rows that stay in the L1 cache while all outputs use them: calls
// f(begin, count). A state of zeros has none.
template <class State, class F>
HWY_INLINE void ForStateBlocks(const State& state, const F& f) {
  if (state.IsZero()) return;
  constexpr size_t kFloats = (size_t{16} << 10) / sizeof(float);
  const size_t step = std::max<size_t>(1, kFloats / state.dim());
  for (size_t begin = 0; begin < state.rows(); begin += step) {
    f(begin, std::min(step, state.rows() - begin));
  }
}

// Adds to R outputs [dim], from number i on, the terms of `count` rows of the state from `begin` on
// in order: out += sum over n of c[r * stride + n] * (row begin + n).
template <size_t R, class Block, class State, class Output>
HWY_NOINLINE void AddStateRows(const State& state, size_t begin, size_t count, const float* c,
                               size_t stride, size_t i, const Output& output) {
  SumOutput outputs[R];
  for (size_t r = 0; r < R; ++r) outputs[r] = {output(i + r), 1.0f, output(i + r)};
  AddRows<R, Block::kVectors>(
      outputs, state.dim(), count, [&](size_t r, size_t n) { return c[r * stride + n]; },
      [&](size_t n) HWY_ATTR { return state.Row(begin + n); });
}

// The same for all of `outputs` outputs, whose coefficients are `stride` floats apart from c on.
template <class Block, class State, class Output>
HWY_INLINE void AddState(const State& state, size_t begin, size_t count, const float* c,
                         size_t stride, size_t outputs, const Output& output) {
  ForEachOutputs<Block::kOutputs>(outputs, [&]<size_t R>(size_t i) HWY_ATTR {
    AddStateRows<R, Block>(state, begin, count, c + i * stride, stride, i, output);
  });
}

// One head of a full chunk: its rows of what the state is made of.
struct ChunkEnd {
  const float* const* b;  // [kStateChunk] pointers to [rows of the state]
  const float* const* x;  // [kStateChunk] pointers to [dim]
  const float* weights;   // [kStateChunk]
  float decay;            // of the state at the chunk's start
};

// next = decay * state + sum over j in order of b_j (weights_j * x_j)^T; next may be the memory of
// the state. `terms` [kStateChunk, dim] is scratch memory.
template <class Block>
HWY_NOINLINE void NextState(const F32State& state, const ChunkEnd& end, float* terms, float* next) {
  const size_t dim = state.dim();
  for (size_t j = 0; j < kStateChunk; ++j) {
    for (size_t i = 0; i < dim; ++i) terms[j * dim + i] = end.weights[j] * end.x[j][i];
  }
  ForEachOutputs<Block::kOutputs>(state.rows(), [&]<size_t R>(size_t first) HWY_ATTR {
    SumOutput outputs[R];
    for (size_t r = 0; r < R; ++r) {
      float* const out = next + (first + r) * dim;
      if (state.IsZero()) std::fill_n(out, dim, 0.0f);
      outputs[r] = {state.IsZero() ? out : state.Row(first + r), end.decay, out};
    }
    AddRows<R, Block::kVectors>(
        outputs, dim, kStateChunk, [&](size_t r, size_t j) { return end.b[j][first + r]; },
        [&](size_t j) { return terms + j * dim; });
  });
}

// The state [rows, dim] of one head in the chunks of an append, one after the other.
class HeadState {
 public:
  // `space` [rows * dim] is scratch memory.
  HeadState(size_t head, size_t rows, size_t dim, float* space)
      : head_(head), rows_(rows), dim_(dim), space_(space) {}

  // Calls f with the state at the chunk's start: as it is stored where a few tokens read it once,
  // else as floats.
  template <class Block, class Log, class F>
  HWY_INLINE void At(const StateChunk<Log>& chunk, const F& f) {
    const std::byte* const stored = chunk.state == nullptr ? nullptr : chunk.state + Offset(chunk);
    if (chunk.states == StateType::kF32 || stored == nullptr) {
      values_ = reinterpret_cast<const float*>(stored);
    } else if (values_ != space_) {
      const Q16State state(stored, rows_, dim_);
      if (chunk.rows <= Block::kOutputs && chunk.next == nullptr) {
        f(state);
        return;
      }
      state.Widen(space_);
      values_ = space_;
    }
    f(F32State(values_, rows_, dim_));
  }

  // Computes and stores the state at the chunk's end, after At. `terms` [kStateChunk, dim] is
  // scratch memory.
  template <class Block, class Log>
  void End(const StateChunk<Log>& chunk, const ChunkEnd& end, float* terms) {
    const F32State state(values_, rows_, dim_);
    std::byte* const stored = chunk.next + Offset(chunk);
    if (chunk.states == StateType::kF32) {
      NextState<Block>(state, end, terms, reinterpret_cast<float*>(stored));
      return;
    }
    NextState<Block>(state, end, terms, space_);
    RoundState(space_, rows_, dim_, stored);
    values_ = space_;
  }

 private:
  template <class Log>
  size_t Offset(const StateChunk<Log>& chunk) const {
    return head_ * StateMatrixBytes(chunk.states, rows_, dim_);
  }

  const size_t head_, rows_, dim_;
  float* const space_;
  // The state at the last chunk's start or, if that is in `space_`, at its end; nullptr if zeros.
  const float* values_ = nullptr;
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#endif  // INLAY_OPS_HEAD_STATE_INL_H_
