// f16 (IEEE binary16) and bfloat16 to and from float, one value at a time.
#ifndef INLAY_OPS_QUANT_FLOAT16_H_
#define INLAY_OPS_QUANT_FLOAT16_H_

#include <algorithm>
#include <bit>
#include <cstdint>

namespace inlay {

// Exact for every input.
inline float FloatFromF16(uint16_t f16) {
  const uint32_t sign = static_cast<uint32_t>(f16 & 0x8000) << 16;
  const uint32_t magnitude = f16 & 0x7FFF;
  // Exponents have a bias of 15 in f16 and of 127 in float; multiplying by 2^112 also converts
  // subnormals.
  float value = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  if (magnitude >= 0x7C00) value = std::bit_cast<float>(0x7F800000 | magnitude << 13);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
}

// Rounds to nearest, ties to even; every NaN becomes the same quiet one with the sign kept.
inline uint16_t F16FromFloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  uint32_t f16;
  if (magnitude > 0x7F800000) {
    f16 = 0x7E00;
  } else if (magnitude < 0x38800000) {
    // Below 2^-14 an f16 is a multiple of 2^-24, which is the unit in the last place at 0.5: the
    // addition rounds.
    f16 = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3F000000;
  } else {
    // Rounds by adding just below 1/2 unit in the last place, or exactly 1/2 if the last bit is
    // odd; the carry may reach the exponent. From 65520 on the result is infinity.
    const uint32_t odd = magnitude >> 13 & 1;
    const uint32_t rounded = (magnitude + 0xFFF + odd - ((127u - 15) << 23)) >> 13;
    f16 = std::min<uint32_t>(rounded, 0x7C00);
  }
  return static_cast<uint16_t>(sign | f16);
}

// Rounds to nearest, ties to even; NaN stays NaN.
inline uint16_t Bf16FromFloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

}  // namespace inlay

#endif  // INLAY_OPS_QUANT_FLOAT16_H_
