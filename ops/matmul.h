// Products of activations with weight matrices.
#ifndef INLAY_OPS_MATMUL_H_
#define INLAY_OPS_MATMUL_H_

#include <cstddef>

#include "ops/thread_pool.h"
#include "ops/views.h"

namespace inlay {

// y[t, r] = sum over c of w[r, c] * x[t, c], for x [tokens, w.cols] and y [tokens, w.rows]; x and y
// must not overlap. The additions of one element happen in an order fixed by w.cols alone: y[t, r]
// has the same bits for any number of tokens and threads. F32, F16 and BF16 weights are multiplied
// as floats; for the quantized types x is rounded to 8 bits first, see ops/quant_matmul.h.
void MatMul(const WeightMatrix& w, ConstFloatRows x, FloatRows y, ThreadPool& pool);

// out[c] = w[row, c] as float, for all w.cols columns: the embedding lookup.
void DequantizeRow(const WeightMatrix& w, size_t row, float* out);

}  // namespace inlay

#endif  // INLAY_OPS_MATMUL_H_
