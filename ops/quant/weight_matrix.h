// A weight matrix as a file stores it.
#ifndef INLAY_OPS_QUANT_WEIGHT_MATRIX_H_
#define INLAY_OPS_QUANT_WEIGHT_MATRIX_H_

#include <cassert>
#include <cstddef>

#include "ops/quant/weight_type.h"

namespace inlay {

// A weight matrix [rows, cols] = [outputs, inputs] as a file stores it: row after row, each a whole
// number of quantization blocks.
struct WeightMatrix {
  const void* data = nullptr;
  WeightType type = WeightType::kF32;
  size_t rows = 0;
  size_t cols = 0;

  size_t RowBytes() const {
    const WeightTypeInfo& info = GetWeightTypeInfo(type);
    return cols / info.block_size * info.block_bytes;
  }
  const void* RowData(size_t r) const {
    assert(r < rows);
    return static_cast<const char*>(data) + r * RowBytes();
  }
  // Rows [first, first + count) as a matrix of their own.
  WeightMatrix Slice(size_t first, size_t count) const {
    assert(first + count <= rows);
    return {static_cast<const char*>(data) + first * RowBytes(), type, count, cols};
  }
};

}  // namespace inlay

#endif  // INLAY_OPS_QUANT_WEIGHT_MATRIX_H_
