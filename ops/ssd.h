// The sequence mixer of Mamba2: causal convolution and the chunked state-space-dual form of its
// recurrence.
#ifndef INLAY_OPS_SSD_H_
#define INLAY_OPS_SSD_H_

#include <cstddef>

#include "ops/thread_pool.h"
#include "ops/views.h"

namespace inlay {

// States are materialised at positions that are multiples of this. Within a chunk a token's output
// is a sum over the chunk's earlier tokens: on average (kSsdChunk / 2) * heads * head_dim
// multiply-adds beside the state's heads * head_dim * state_dim, i.e. 1/8 of it at state dim 128,
// while the state is written once per 32 tokens.
inline constexpr size_t kSsdChunk = 32;

struct SsdShape {
  size_t heads = 0;
  size_t head_dim = 0;
  size_t groups = 0;  // heads is a multiple; head h reads B and C of group h / (heads / groups)
  size_t state_dim = 0;
  size_t conv_width = 0;

  constexpr size_t Inner() const { return heads * head_dim; }
  constexpr size_t BcDim() const { return groups * state_dim; }
  // Channels of the convolution: x, then B, then C.
  constexpr size_t ConvDim() const { return Inner() + 2 * BcDim(); }
  constexpr size_t StateElements() const { return heads * head_dim * state_dim; }

  // The log of one chunk: per token the raw inputs of the convolution [ConvDim], its outputs x and
  // B [Inner + BcDim], and dt and the running sum of dt * a [heads each].
  constexpr size_t LogRowElements() const { return ConvDim() + Inner() + BcDim() + 2 * heads; }
  constexpr size_t LogElements() const { return kSsdChunk * LogRowElements(); }
};

// The log of one chunk of kSsdChunk positions, in memory of shape.LogElements() floats.
struct SsdLog {
  SsdShape shape;
  float* data = nullptr;

  FloatRows raw() const { return {data, kSsdChunk, shape.ConvDim()}; }
  FloatRows x() const {
    return {raw().data + kSsdChunk * shape.ConvDim(), kSsdChunk, shape.Inner()};
  }
  FloatRows b() const { return {x().data + kSsdChunk * shape.Inner(), kSsdChunk, shape.BcDim()}; }
  FloatRows dt() const { return {b().data + kSsdChunk * shape.BcDim(), kSsdChunk, shape.heads}; }
  FloatRows decay_sum() const {
    return {dt().data + kSsdChunk * shape.heads, kSsdChunk, shape.heads};
  }
};

// Causal depthwise convolution with bias, then SiLU: for each token t and channel c
//   y[t, c] = silu(bias[c] + sum over k of weight[k, c] * input[t + k][c]),  k = 0 .. width - 1 in
//   this order,
// where `input` lists y.rows + width - 1 pointers to rows of y.cols values, oldest first (rows
// before position 0 are pointers to zeros) and weight is [width, channels].
void CausalConv1dSilu(const float* const* input, const float* weight, size_t width,
                      const float* bias, FloatRows y);

// dt = softplus(raw_dt + bias), both [tokens, heads]; bias is [heads].
void SsdTimeSteps(ConstFloatRows raw_dt, const float* bias, FloatRows dt);

// What an append adds to one chunk.
struct SsdChunk {
  size_t first = 0;   // tokens of the chunk that were there before: rows [0, first) of its log
  size_t row = 0;     // the first of the new ones among the append's rows
  size_t rows = 0;    // how many of them
  SsdLog log;         // may have no memory where first is 0 and nothing is kept
  bool keep = false;  // writes the decay sums of the new tokens to the log
  const float* state =
      nullptr;            // at the chunk's start [heads, state_dim, head_dim]; nullptr: zeros
  float* next = nullptr;  // gets the state at the chunk's end, which the new tokens must
                          // reach; nullptr for none. Not overlapping `state`.
};

// New tokens of one sequence, in chunks one after the other.
struct SsdAppend {
  SsdShape shape;
  const SsdChunk* chunks = nullptr;
  size_t count = 0;          // of chunks
  ConstFloatRows conv;       // [tokens, ConvDim], convolved x, B and C
  ConstFloatRows dt;         // [tokens, heads]
  const float* a = nullptr;  // [heads]
  const float* d = nullptr;  // [heads]
  FloatRows y;               // [tokens, heads * head_dim], the result
};

// The outputs of the new tokens (Dao & Gu 2024, section 6), per head, with t and j counted from the
// start of a token's chunk, `state` that at this start and s_t = sum over i <= t of dt_i * a:
//   y[t] = exp(s_t) * (state^T C_t) + sum over j <= t in order of
//          (C_t . B_j) * exp(s_t - s_j) * dt_j * x_j + d * x_t
// and the state at the end of a full chunk:
//   next = exp(s_last) * state + sum over j in order of B_j (exp(s_last - s_j) * dt_j * x_j)^T.
// One token or many are the same chain of operations for each.
void SsdMix(const SsdAppend& append, ThreadPool& pool);

}  // namespace inlay

#endif  // INLAY_OPS_SSD_H_
