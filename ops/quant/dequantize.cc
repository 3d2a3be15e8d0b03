#include "ops/quant/dequantize.h"

#include "ops/quant/quant_unpack.h"
#include "ops/row_kernels.h"

namespace inlay {

void DequantizeRow(const WeightMatrix& w, size_t row, float* out) {
  switch (w.type) {
    case WeightType::kF32:
    case WeightType::kF16:
    case WeightType::kBF16:
      return ConvertRowToFloat(w.type, w.RowData(row), w.cols, out);
    default:
      return DequantizeBlocks(w.type, w.RowData(row), w.cols, out);
  }
}

}  // namespace inlay
