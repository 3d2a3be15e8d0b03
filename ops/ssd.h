// The sequence mixer of Mamba2: the chunked state-space-dual form of its recurrence.
#ifndef INLAY_OPS_SSD_H_
#define INLAY_OPS_SSD_H_

#include <array>
#include <cstddef>
#include <span>

#include "ops/state_chunk.h"
#include "ops/team.h"
#include "ops/views.h"

namespace inlay {

struct SsdShape {
  size_t heads = 0;
  size_t head_dim = 0;
  // Divides heads; head h reads B and C of group h / (heads / groups).
  size_t groups = 0;
  size_t state_dim = 0;

  constexpr size_t Inner() const { return heads * head_dim; }
  constexpr size_t BcDim() const { return groups * state_dim; }
  // Columns of the mixer's input: x, then B, then C.
  constexpr size_t XbcDim() const { return Inner() + 2 * BcDim(); }
  constexpr size_t StateElements() const { return heads * head_dim * state_dim; }
  constexpr size_t StateBytes(StateType type) const {
    return heads * StateMatrixBytes(type, state_dim, head_dim);
  }
};

// The log of one chunk: per token x [Inner], B [BcDim], dt and the running sum of dt * a [heads
// each]. Each of the four is a matrix of kStateChunk rows; they follow each other in `data`.
struct SsdLog {
  using Shape = SsdShape;
  static constexpr std::array<size_t, 4> Columns(const SsdShape& shape) {
    return {shape.Inner(), shape.BcDim(), shape.heads, shape.heads};
  }

  SsdShape shape;
  float* data = nullptr;

  FloatRows x() const { return {data, kStateChunk, shape.Inner()}; }
  FloatRows b() const {
    return {x().data + kStateChunk * shape.Inner(), kStateChunk, shape.BcDim()};
  }
  FloatRows dt() const {
    return {b().data + kStateChunk * shape.BcDim(), kStateChunk, shape.heads};
  }
  FloatRows decay_sum() const {
    return {dt().data + kStateChunk * shape.heads, kStateChunk, shape.heads};
  }
};

// dt = softplus(raw_dt + bias), both [tokens, heads]; bias is [heads]. dt may be raw_dt.
void SsdTimeSteps(ConstFloatRows raw_dt, const float* bias, FloatRows dt);

// A chunk whose states are a matrix [state_dim, head_dim] for each head. Of its log, SsdMix writes
// the decay sums; the caller writes the rest.
using SsdChunk = StateChunk<SsdLog>;

// New tokens of one sequence, in consecutive chunks.
struct SsdAppend {
  SsdShape shape;
  const SsdChunk* chunks = nullptr;
  size_t count = 0;          // of chunks
  ConstFloatRows xbc;        // [tokens, XbcDim], x, B and C
  ConstFloatRows dt;         // [tokens, heads]
  const float* a = nullptr;  // [heads]
  const float* d = nullptr;  // [heads]
  size_t row = 0;            // of its first token among the tokens of all appends
  // The results, only of the tokens from `first_output` on: [tokens - first_output, heads *
  // head_dim].
  size_t first_output = 0;
  FloatRows y;
};

// Floats of scratch memory that SsdMix needs; `tokens` counts those of all appends.
constexpr size_t SsdScratchFloats(const SsdShape& shape, size_t tokens, size_t threads) {
  return kStateChunk * shape.groups * tokens +
         threads * (kStateChunk + shape.state_dim) * shape.head_dim;
}

// The outputs of the new tokens (Dao & Gu 2024, section 6), per head, with t and j counted from the
// start of a token's chunk, `state` the state at that start and s_t = sum over i <= t of dt_i * a:
//   y[t] = exp(s_t) * (state^T C_t) + sum over j <= t in order of
//          (C_t . B_j) * exp(s_t - s_j) * dt_j * x_j + d * x_t
// and the state at the end of a full chunk:
//   next = exp(s_last) * state + sum over j in order of B_j (exp(s_last - s_j) * dt_j * x_j)^T,
// rounded to the type of states.
// Each token has the same chain of operations, whether it comes alone or with others. All appends
// have the same shape.
void SsdMix(std::span<const SsdAppend> appends, float* scratch, Team& team);

}  // namespace inlay

#endif  // INLAY_OPS_SSD_H_
