// Activations rounded to 8 bits, the other operand of products with quantized weights.
#ifndef INLAY_OPS_QUANTIZED_ROWS_H_
#define INLAY_OPS_QUANTIZED_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "ops/thread_pool.h"
#include "ops/views.h"

namespace inlay {

// Columns that share a scale, and columns whose quants are summed: the smallest group of weights
// with a scale.
inline constexpr size_t kQuantBlock = 32;
inline constexpr size_t kQuantSumGroup = 16;

// Rows of cols elements, a multiple of kQuantBlock: x ~ scale * q with scale the largest magnitude
// of the block / 127.
struct QuantizedRows {
  size_t cols = 0;
  int8_t* quants = nullptr;  // [rows, cols]
  float* scales = nullptr;   // [rows, cols / kQuantBlock]
  int32_t* sums = nullptr;   // [rows, cols / kQuantSumGroup], of the quants

  QuantizedRows Row(size_t r) const {
    return {cols, quants + r * cols, scales + r * (cols / kQuantBlock),
            sums + r * (cols / kQuantSumGroup)};
  }
};

// Fills `out` with the rows of x, each on its own: a row's result does not depend on the others.
void QuantizeRows(ConstFloatRows x, QuantizedRows out, ThreadPool& pool);

}  // namespace inlay

#endif  // INLAY_OPS_QUANTIZED_ROWS_H_
