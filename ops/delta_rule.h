// The sequence mixer of gated delta nets: the chunked form of their recurrence.
#ifndef INLAY_OPS_DELTA_RULE_H_
#define INLAY_OPS_DELTA_RULE_H_

#include <array>
#include <cstddef>
#include <span>

#include "ops/state_chunk.h"
#include "ops/team.h"
#include "ops/views.h"

namespace inlay {

// Keys, queries and values have the same width.
struct DeltaShape {
  size_t key_heads = 0;    // of queries and keys
  size_t value_heads = 0;  // value head h reads the query and key head h % key_heads
  size_t head_dim = 0;

  constexpr size_t KeyDim() const { return key_heads * head_dim; }
  constexpr size_t Inner() const { return value_heads * head_dim; }
  // Columns of the mixer's input: queries, then keys, then values.
  constexpr size_t QkvDim() const { return 2 * KeyDim() + Inner(); }
  constexpr size_t StateElements() const { return value_heads * head_dim * head_dim; }
  constexpr size_t StateBytes(StateType type) const {
    return value_heads * StateMatrixBytes(type, head_dim, head_dim);
  }
};

// The log of one chunk, a matrix of kStateChunk rows: per token the keys [KeyDim], the corrections
// u [Inner] and the running sum of dt * a [value_heads].
struct DeltaLog {
  using Shape = DeltaShape;
  static constexpr std::array<size_t, 1> Columns(const DeltaShape& shape) {
    return {shape.KeyDim() + shape.Inner() + shape.value_heads};
  }

  DeltaShape shape;
  float* data = nullptr;

  FloatRows keys() const { return Part(0, shape.KeyDim()); }
  FloatRows u() const { return Part(shape.KeyDim(), shape.Inner()); }
  FloatRows decay_sum() const { return Part(shape.KeyDim() + shape.Inner(), shape.value_heads); }

 private:
  FloatRows Part(size_t first, size_t cols) const {
    return {data + first, kStateChunk, cols, Columns(shape)[0]};
  }
};

// A chunk whose states are a matrix [head_dim of keys, head_dim of values] for each value head. Of
// its log, DeltaMix writes the corrections and the decay sums; the caller writes the keys.
using DeltaChunk = StateChunk<DeltaLog>;

// New tokens of one sequence, in consecutive chunks.
struct DeltaAppend {
  DeltaShape shape;
  const DeltaChunk* chunks = nullptr;
  size_t count = 0;  // of chunks
  // [tokens, QkvDim]: queries, keys and values; DeltaMix replaces the values by corrections. Keys
  // have length 1, and queries the length that the outputs are scaled by.
  FloatRows qkv;
  ConstFloatRows dt;         // [tokens, value_heads]
  ConstFloatRows beta;       // [tokens, value_heads], the step sizes, in [0, 1]
  const float* a = nullptr;  // [value_heads], negative
  size_t row = 0;            // of its first token among the tokens of all appends
  // The results, only of the tokens from `first_output` on: [tokens - first_output, Inner].
  size_t first_output = 0;
  FloatRows y;
};

// Floats of scratch memory that DeltaMix needs; `tokens` counts those of all appends.
constexpr size_t DeltaScratchFloats(const DeltaShape& shape, size_t tokens, size_t threads) {
  return 2 * kStateChunk * shape.key_heads * tokens +
         threads * (kStateChunk + shape.head_dim) * shape.head_dim;
}

// The outputs of the new tokens (Yang, Kautz & Hatamizadeh 2024, "Gated Delta Networks", section
// 3.3), per value head, with t and j counted from the start of a token's chunk, S the state at that
// start and s_t = sum over i <= t of dt_i * a:
//   u_t = beta_t * v_t - beta_t exp(s_t) * (S^T k_t)
//         - sum over j < t in order of beta_t exp(s_t - s_j) (k_t . k_j) * u_j
//   y_t = exp(s_t) * (S^T q_t) + sum over j <= t in order of exp(s_t - s_j) (q_t . k_j) * u_j
// and the state at the end of a full chunk:
//   next = exp(s_last) * S + sum over j in order of k_j (exp(s_last - s_j) * u_j)^T,
// rounded to the type of states. Unrolled, that is the recurrence S_t = exp(dt_t * a) S_{t-1} + k_t
// u_t^T with u_t = beta_t (v_t - exp(dt_t * a) S_{t-1}^T k_t) and y_t = S_t^T q_t. Each token has
// the same chain of operations, whether it comes alone or with others. All appends have the same
// shape.
void DeltaMix(std::span<const DeltaAppend> appends, float* scratch, Team& team);

}  // namespace inlay

#endif  // INLAY_OPS_DELTA_RULE_H_
