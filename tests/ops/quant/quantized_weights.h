// Matrices of every quantized type, as tests multiply with them.
#ifndef INLAY_TESTS_OPS_QUANTIZED_WEIGHTS_H_
#define INLAY_TESTS_OPS_QUANTIZED_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "ops/quant/dequantize.h"
#include "ops/quant/weight_type.h"
#include "ops/views.h"

namespace inlay {

inline std::vector<WeightType> QuantizedTypes() {
  std::vector<WeightType> types;
  for (const WeightTypeInfo& info : WeightTypes()) {
    if (info.block_size > 1) types.push_back(info.type);
  }
  return types;
}

// Makes the scales of a block of random bytes around 2^-5: of the upper byte of an f16, sign,
// exponent 9 .. 11, and two bits of fraction.
inline void MakeScalesModerate(WeightType type, uint8_t* block) {
  if (type == WeightType::kMXFP4) {
    block[0] = static_cast<uint8_t>(120 + block[0] % 3);
    return;
  }
  const bool has_min = type == WeightType::kQ4_1 || type == WeightType::kQ5_1 ||
                       type == WeightType::kQ2_K || type == WeightType::kQ4_K ||
                       type == WeightType::kQ5_K;
  const size_t offset = type == WeightType::kQ2_K   ? 80
                        : type == WeightType::kQ3_K ? 108
                        : type == WeightType::kQ6_K ? 208
                                                    : 0;
  for (size_t h = 0; h < (has_min ? 2 : 1); ++h) {
    uint8_t& upper = block[offset + 2 * h + 1];
    upper = static_cast<uint8_t>((upper & 0x83) | (9 + upper % 3) << 2);
  }
}

// A matrix of blocks of random bytes, or of the byte `all`, with scales around 2^-5.
struct Weights {
  Weights(WeightType type, size_t rows, size_t cols, uint32_t seed,
          std::optional<uint8_t> all = std::nullopt) {
    const WeightTypeInfo& info = GetWeightTypeInfo(type);
    std::mt19937 generator(seed);
    const size_t blocks = rows * cols / info.block_size;
    bytes.resize(blocks * info.block_bytes + 1);
    for (uint8_t& byte : bytes) byte = all.value_or(static_cast<uint8_t>(generator()));
    for (size_t b = 0; b < blocks; ++b) MakeScalesModerate(type, &bytes[1 + b * info.block_bytes]);
    // At an odd address.
    matrix = {bytes.data() + 1, type, rows, cols};
    values.resize(rows * cols);
    for (size_t r = 0; r < rows; ++r) DequantizeRow(matrix, r, &values[r * cols]);
  }

  std::vector<uint8_t> bytes;
  WeightMatrix matrix;
  std::vector<float> values;
};

}  // namespace inlay

#endif  // INLAY_TESTS_OPS_QUANTIZED_WEIGHTS_H_
