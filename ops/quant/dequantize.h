// Single rows of weight matrices as floats.
#ifndef INLAY_OPS_QUANT_DEQUANTIZE_H_
#define INLAY_OPS_QUANT_DEQUANTIZE_H_

#include <cstddef>

#include "ops/quant/weight_matrix.h"
#include "ops/views.h"

namespace inlay {

// out[c] = w[row, c] for all w.cols columns, bit for bit as the type defines it: the embedding
// lookup.
void DequantizeRow(const WeightMatrix& w, size_t row, float* out);

}  // namespace inlay

#endif  // INLAY_OPS_QUANT_DEQUANTIZE_H_
