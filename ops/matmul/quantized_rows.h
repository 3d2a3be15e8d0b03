// Activations rounded to 8 bits, the other operand of products with quantized weights.
#ifndef INLAY_OPS_MATMUL_QUANTIZED_ROWS_H_
#define INLAY_OPS_MATMUL_QUANTIZED_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ops/views.h"

namespace inlay {

// Columns that share a scale.
inline constexpr size_t kQuantBlock = 32;

// The activations of a quantization block and all that kernels need of them, in one cache line, so
// that a kernel that computes several rows at once keeps only one pointer for each.
struct alignas(64) QuantizedBlock {
  // Kernels multiply with unsigned weights q + b for b = 128 or a smaller power of two. Their sums
  // start with -b times the sum of the quants, which cancels b; it is stored for b = 128.
  static constexpr int32_t kCorrection = -128;

  int8_t quants[kQuantBlock];  // x ~ scale * q, scale the largest magnitude of the block / 127
  float scale;
  float sum;           // scale * sum of the quants
  float sums16[2];     // the same of each 16 columns, for weights with scales for 16 columns
  int32_t correction;  // kCorrection * sum of the quants
  int32_t corrections16[2];
  int32_t unused;
};
static_assert(sizeof(QuantizedBlock) == 64);

// The sum of 16 quants, eight of them at a time: one by one they took 6 % of the processors' time
// when two ranks prefilled.
inline int32_t SumOf16(const int8_t* quants) {
  constexpr uint64_t kSigns = 0x8080808080808080, kEvenBytes = 0x00FF00FF00FF00FF;
  uint64_t pairs = 0;  // four sums of quants + 128
  for (size_t i = 0; i < 16; i += 8) {
    uint64_t bytes;
    std::memcpy(&bytes, quants + i, 8);
    bytes ^= kSigns;
    pairs += (bytes & kEvenBytes) + (bytes >> 8 & kEvenBytes);
  }
  return static_cast<int32_t>(pairs * 0x0001000100010001 >> 48) - 16 * 128;
}

// Sets all else from the scale and the sums of the first and of the last 16 quants.
inline void SetSums(QuantizedBlock& block, int32_t first, int32_t last) {
  const int32_t sums[2] = {first, last};
  block.sum = block.scale * static_cast<float>(sums[0] + sums[1]);
  block.correction = QuantizedBlock::kCorrection * (sums[0] + sums[1]);
  for (size_t i = 0; i < 2; ++i) {
    block.sums16[i] = block.scale * static_cast<float>(sums[i]);
    block.corrections16[i] = QuantizedBlock::kCorrection * sums[i];
  }
}

// The same from the quants and the scale alone, as for a block from another rank: the bits that
// rounding gives.
inline void SetSums(QuantizedBlock& block) {
  SetSums(block, SumOf16(block.quants), SumOf16(block.quants + 16));
}

// Rows of cols elements, a multiple of kQuantBlock.
struct QuantizedRows {
  size_t cols = 0;
  QuantizedBlock* blocks = nullptr;  // [rows, cols / kQuantBlock]

  QuantizedBlock* Row(size_t r) const { return blocks + r * (cols / kQuantBlock); }
};

}  // namespace inlay

#endif  // INLAY_OPS_MATMUL_QUANTIZED_ROWS_H_
