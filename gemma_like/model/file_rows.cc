#include "gemma_like/model/file_rows.h"

#include <algorithm>
#include <cstdint>

#include "ops/quant/dequantize.h"
#include "ops/quant/weight_type.h"

namespace inlay {

void FileRows::Read(size_t row, float* out) const {
  const WeightTypeInfo& info = GetWeightTypeInfo(matrix_.type);
  const auto* data = static_cast<const uint8_t*>(matrix_.RowData(row));
  // A piece at a time, so that no row is too long for the stack.
  alignas(8) uint8_t piece[8192];
  const size_t most = sizeof(piece) / info.block_bytes;
  for (size_t left = matrix_.cols / info.block_size; left > 0;) {
    const size_t blocks = std::min(left, most), cols = blocks * info.block_size;
    file_->Read({data, blocks * info.block_bytes}, piece);
    DequantizeRow({.data = piece, .type = matrix_.type, .rows = 1, .cols = cols}, 0, out);
    data += blocks * info.block_bytes;
    out += cols;
    left -= blocks;
  }
}

}  // namespace inlay
