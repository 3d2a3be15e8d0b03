// Kernels on a single row: conversions and reductions that other ops are made of. They share one
// source because each source with kernels parses Highway once per CPU target.
#ifndef INLAY_OPS_ROW_KERNELS_H_
#define INLAY_OPS_ROW_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "ops/matmul/quantized_rows.h"
#include "ops/quant/weight_type.h"

namespace inlay {

// Rounds `cols` floats to the bits of bfloat16, ties to even, and writes one zero after an
// odd number of them.
void RoundRowToBf16(const float* x, size_t cols, uint16_t* out);

// Rounds `cols` floats, a multiple of kQuantBlock, to quantization blocks of 8-bit integers.
void RoundRowToBlocks(const float* x, size_t cols, QuantizedBlock* out);

// out[i] = from[i], exactly, for n elements of type kF32, kF16 or kBF16.
void ConvertRowToFloat(WeightType type, const void* from, size_t n, float* out);

// The largest value that is not NaN; -infinity if there is none.
float LargestOfRow(const float* x, size_t n);

// Sum over i of exp(x[i] - largest), in double.
double SumOfRowExp(const float* x, size_t n, float largest);

// x[i] = PortableExp(x[i]), the same bits.
void ExpOfRow(double* x, size_t n);

// True when all n values are finite.
bool AllFinite(const float* x, size_t n);

}  // namespace inlay

#endif  // INLAY_OPS_ROW_KERNELS_H_
