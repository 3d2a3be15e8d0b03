// Products with a range of a matrix's tiles, by groups of packed formats. Each group is a source of
// its own, so that groups are compiled in parallel, and only for the CPU targets they gain from.
#ifndef INLAY_OPS_MATMUL_MATMUL_TILES_H_
#define INLAY_OPS_MATMUL_MATMUL_TILES_H_

#include <cstddef>

#include "ops/matmul/matmul_task.h"
#include "ops/matmul/operand.h"

namespace inlay {

// Computes task.y for the rows of the tiles [begin, end) of task.w and all tokens; x is the input
// in the form that the format needs. See MatMul for the order of additions.
template <class Rows>
using MultiplyTilesOf = void (*)(const MatMulTask& task, const Rows& x, size_t begin, size_t end);

// The kernels for each group of formats.
struct TileKernels {
  MultiplyTilesOf<ConstFloatRows> floats;  // kF32 and kF16
  MultiplyTilesOf<Bf16Rows> bf16;          // kBF16
  MultiplyTilesOf<QuantizedRows> bytes;    // kBytes32
  MultiplyTilesOf<QuantizedRows> nibbles;  // nibbles, with further bits or without
  MultiplyTilesOf<QuantizedRows> tables;   // indices into tables, and quants of 2 or 3 bits
  bool use_amx = false;                    // `bf16` for any tokens, the last three where IsForAmx
  bool unpack = false;  // the last three, from kManyUnpackedTokens on (ops/matmul/matmul_loops.h)
};

// The kernels of the CPU target in use.
TileKernels ChosenTileKernels();

// What ChosenTileKernels() chooses from: the kernels of each extension (ops/cpu/extension.h).
namespace plain {
MultiplyTilesOf<ConstFloatRows> FloatTiles();
MultiplyTilesOf<Bf16Rows> Bf16Tiles();
MultiplyTilesOf<QuantizedRows> ByteTiles();
MultiplyTilesOf<QuantizedRows> NibbleTiles();
MultiplyTilesOf<QuantizedRows> TableTiles();
}  // namespace plain
namespace vnni {
MultiplyTilesOf<QuantizedRows> ByteTiles();
MultiplyTilesOf<QuantizedRows> NibbleTiles();
MultiplyTilesOf<QuantizedRows> TableTiles();
}  // namespace vnni
// Tokens that a product of AMX takes: as many as an AMX register has rows.
inline constexpr size_t kAmxTokens = 16;
// From so many tokens on AMX multiplies them by any quantized weights.
inline constexpr size_t kLeastAmxTokens = 3 * kAmxTokens;
// Whether AMX multiplies so many tokens by weights of this format. It takes a multiple of
// kAmxTokens. Below kLeastAmxTokens that pays where at most a third of what it takes is missing, or
// a sixth for groups of 16 columns, which take it longer.
constexpr bool IsForAmx(PackedFormat format, size_t tokens) {
  const size_t taken = (tokens + kAmxTokens - 1) / kAmxTokens * kAmxTokens;
  const size_t missing = taken - tokens;
  return tokens >= kLeastAmxTokens ||
         missing * (GetGroupLayout(format).cols == 16 ? 6 : 3) <= taken;
}
// Tiles, at most, whose products share the copies of activations that AMX reads.
inline constexpr size_t kAmxTiles = 48;
namespace amx {
MultiplyTilesOf<Bf16Rows> Bf16Tiles();
MultiplyTilesOf<QuantizedRows> QuantizedTiles();  // of all quantized formats
}  // namespace amx
namespace dotprod {
MultiplyTilesOf<QuantizedRows> ByteTiles();
MultiplyTilesOf<QuantizedRows> NibbleTiles();
MultiplyTilesOf<QuantizedRows> TableTiles();
}  // namespace dotprod
namespace i8mm {
MultiplyTilesOf<Bf16Rows> Bf16Tiles();
MultiplyTilesOf<QuantizedRows> ByteTiles();
MultiplyTilesOf<QuantizedRows> NibbleTiles();
MultiplyTilesOf<QuantizedRows> TableTiles();
}  // namespace i8mm

}  // namespace inlay

#endif  // INLAY_OPS_MATMUL_MATMUL_TILES_H_
