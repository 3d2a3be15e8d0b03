// Causal depthwise convolution over the tokens of a sequence.
#ifndef INLAY_OPS_CONV_H_
#define INLAY_OPS_CONV_H_

#include <cstddef>

#include "ops/views.h"

namespace inlay {

// The filter of each channel, its bias and its activation function.
struct CausalConv {
  const float* weight = nullptr;  // [width, channels]; the last row applies to the current token
  size_t width = 0;
  const float* bias = nullptr;  // [channels], or nullptr
  bool silu = false;            // whether the sum goes through SiLU
};

// For each token t and channel c
//   y[t, c] = f(bias[c] + sum over k of weight[k, c] * input[t + k][c]),  k = 0 .. width - 1 in
//   this order, f being SiLU or the identity,
// where `input` lists y.rows + width - 1 pointers to rows of y.cols values, oldest first (rows
// before position 0 are pointers to zeros).
void CausalConv1d(const CausalConv& conv, const float* const* input, FloatRows y);

}  // namespace inlay

#endif  // INLAY_OPS_CONV_H_
