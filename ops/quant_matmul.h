// Products of activations with block-quantized weights; used by MatMul.
#ifndef INLAY_OPS_QUANT_MATMUL_H_
#define INLAY_OPS_QUANT_MATMUL_H_

#include "ops/thread_pool.h"
#include "ops/views.h"

namespace inlay {

// As MatMul, for quantized types. Each row of x is rounded to 8 bits per block of 32: x ~ d * q
// with d the largest magnitude over 127. An element of y is a chain over the groups of weights that
// share a scale, in order: y = fma(sum of w_q * q, w_scale * d, y), and where the type has offsets,
// then y = fma(sum of q, w_offset * d, y). The integer sums are exact.
void QuantizedMatMul(const WeightMatrix& w, ConstFloatRows x, FloatRows y, ThreadPool& pool);

}  // namespace inlay

#endif  // INLAY_OPS_QUANT_MATMUL_H_
