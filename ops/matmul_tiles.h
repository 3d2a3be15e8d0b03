// Products with a range of a matrix's tiles, by groups of packed formats. Each group is a source of
// its own, so that they are compiled side by side and only for the CPU targets that they gain from.
#ifndef INLAY_OPS_MATMUL_TILES_H_
#define INLAY_OPS_MATMUL_TILES_H_

#include <cstddef>

#include "ops/matmul.h"

namespace inlay {

// Each computes task.y for the rows of the tiles [begin, end) of task.w and all tokens; x is the
// input in the form that the format takes. See MatMul for the order of additions.

// kF32 and kF16.
void MultiplyFloatTiles(const MatMulTask& task, ConstFloatRows x, size_t begin, size_t end);
// kBF16.
void MultiplyBf16Tiles(const MatMulTask& task, const Bf16Rows& x, size_t begin, size_t end);
// Quants that are whole bytes: kBytes32, kWide32 and kWide16.
void MultiplyByteTiles(const MatMulTask& task, const QuantizedRows& x, size_t begin, size_t end);
// Quants that are nibbles, with further bits or without: all other quantized formats.
void MultiplyNibbleTiles(const MatMulTask& task, const QuantizedRows& x, size_t begin, size_t end);

}  // namespace inlay

#endif  // INLAY_OPS_MATMUL_TILES_H_
