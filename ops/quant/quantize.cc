#include "ops/quant/quantize.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "ops/quant/float16.h"
#include "ops/quant/quant_blocks.h"
#include "ops/quant/quant_fit.h"
#include "ops/quant/quantize_super.h"

namespace inlay {
namespace {

float InverseOrZero(float d) { return d != 0 ? 1.0f / d : 0.0f; }

void PackNibbles(const uint8_t (&levels)[32], uint8_t (&nibbles)[16]) {
  for (size_t i = 0; i < 16; ++i) {
    nibbles[i] = static_cast<uint8_t>((levels[i] & 15) | (levels[i + 16] & 15) << 4);
  }
}

void PackFifthBits(const uint8_t (&levels)[32], uint8_t (&high)[4]) {
  for (size_t b = 0; b < 4; ++b) {
    high[b] = 0;
    for (size_t i = 0; i < 8; ++i) high[b] |= static_cast<uint8_t>(levels[8 * b + i] >> 4 << i);
  }
}

// Levels 0 .. 2 * zero - 1 around `zero`; the extreme value maps to level 0. Returns the scale.
float CentredLevels(const float (&x)[32], int zero, uint8_t (&levels)[32]) {
  const float d = Extreme(x, 32) / static_cast<float>(-zero);
  const float inverse = InverseOrZero(d);
  for (size_t i = 0; i < 32; ++i) {
    const float level = x[i] * inverse + (static_cast<float>(zero) + 0.5f);
    levels[i] = static_cast<uint8_t>(TruncateWithin(level, 0, 2 * zero - 1));
  }
  return d;
}

// Levels 0 .. max_level between the smallest value, *min, and the largest. Returns the scale.
float RangeLevels(const float (&x)[32], int max_level, uint8_t (&levels)[32], float* min) {
  float low = std::numeric_limits<float>::max(), high = -low;
  for (float v : x) {
    if (v < low) low = v;
    if (v > high) high = v;
  }
  const float d = (high - low) / static_cast<float>(max_level);
  const float inverse = InverseOrZero(d);
  for (size_t i = 0; i < 32; ++i) {
    levels[i] = static_cast<uint8_t>(TruncateWithin((x[i] - low) * inverse + 0.5f, 0, max_level));
  }
  *min = low;
  return d;
}

void Quantize(const float (&x)[32], BlockQ4_0* block) {
  uint8_t levels[32];
  block->d.Set(CentredLevels(x, 8, levels));
  PackNibbles(levels, block->nibbles);
}

void Quantize(const float (&x)[32], BlockQ4_1* block) {
  uint8_t levels[32];
  float min;
  block->d.Set(RangeLevels(x, 15, levels, &min));
  block->m.Set(min);
  PackNibbles(levels, block->nibbles);
}

void Quantize(const float (&x)[32], BlockQ5_0* block) {
  uint8_t levels[32];
  block->d.Set(CentredLevels(x, 16, levels));
  PackNibbles(levels, block->nibbles);
  PackFifthBits(levels, block->high);
}

void Quantize(const float (&x)[32], BlockQ5_1* block) {
  uint8_t levels[32];
  float min;
  block->d.Set(RangeLevels(x, 31, levels, &min));
  block->m.Set(min);
  PackNibbles(levels, block->nibbles);
  PackFifthBits(levels, block->high);
}

void Quantize(const float (&x)[32], BlockQ8_0* block) {
  const float d = std::abs(Extreme(x, 32)) / 127;
  const float inverse = InverseOrZero(d);
  block->d.Set(d);
  for (size_t i = 0; i < 32; ++i) {
    // std::round rounds ties away from zero, as this type alone does.
    block->quants[i] = static_cast<int8_t>(TruncateWithin(std::round(x[i] * inverse), -127, 127));
  }
}

void Quantize(const float (&x)[32], BlockIQ4_NL* block) {
  const float d = FitIq4Nl(x);
  const float inverse = InverseOrZero(d);
  block->d.Set(d);
  uint8_t levels[32];
  for (size_t i = 0; i < 32; ++i) levels[i] = static_cast<uint8_t>(NearestIq4Nl(inverse * x[i]));
  PackNibbles(levels, block->nibbles);
}

// The index of the 4-bit float nearest to x / scale, the first of two equally near.
uint8_t NearestFp4(float x, float scale) {
  uint8_t nearest = 0;
  float least = std::abs(scale * static_cast<float>(kFp4Values[0]) - x);
  for (uint8_t i = 1; i < 16; ++i) {
    const float error = std::abs(scale * static_cast<float>(kFp4Values[i]) - x);
    if (error < least) {
      nearest = i;
      least = error;
    }
  }
  return nearest;
}

void Quantize(const float (&x)[32], BlockMXFP4* block) {
  const float largest = std::abs(Extreme(x, 32));
  // The logarithm as a float, which rounds values just below a power of two up to it.
  const float power = largest > 0 ? std::floor(static_cast<float>(std::log2(double{largest}))) : 0;
  block->e = largest > 0 ? static_cast<uint8_t>(TruncateWithin(power + (127 - 2), 0, 255)) : 0;
  uint8_t levels[32];
  for (size_t i = 0; i < 32; ++i) levels[i] = NearestFp4(x[i], block->Scale());
  PackNibbles(levels, block->nibbles);
}

template <class Block>
void QuantizeSmallBlocks(const float* x, size_t n, void* out) {
  assert(n % kSmallBlock == 0);
  Block* blocks = static_cast<Block*>(out);
  for (size_t b = 0; b < n / kSmallBlock; ++b) {
    float values[kSmallBlock];
    std::copy_n(x + b * kSmallBlock, kSmallBlock, values);
    Quantize(values, &blocks[b]);
  }
}

template <class Block>
void QuantizeSuperBlocks(const float* x, size_t n, void* out) {
  assert(n % kSuperBlock == 0);
  Block* blocks = static_cast<Block*>(out);
  for (size_t b = 0; b < n / kSuperBlock; ++b) QuantizeSuperBlock(x + b * kSuperBlock, &blocks[b]);
}

template <uint16_t kConvert(float)>
void Round16(const float* x, size_t n, void* out) {
  for (size_t i = 0; i < n; ++i) {
    const uint16_t bits = kConvert(x[i]);
    std::memcpy(static_cast<char*>(out) + 2 * i, &bits, 2);
  }
}

}  // namespace

void QuantizeRow(WeightType type, const float* x, size_t n, void* out) {
  switch (type) {
    case WeightType::kF32:
      std::memcpy(out, x, n * sizeof(float));
      return;
    case WeightType::kF16:
      return Round16<F16FromFloat>(x, n, out);
    case WeightType::kBF16:
      return Round16<Bf16FromFloat>(x, n, out);
    case WeightType::kQ4_0:
      return QuantizeSmallBlocks<BlockQ4_0>(x, n, out);
    case WeightType::kQ4_1:
      return QuantizeSmallBlocks<BlockQ4_1>(x, n, out);
    case WeightType::kQ5_0:
      return QuantizeSmallBlocks<BlockQ5_0>(x, n, out);
    case WeightType::kQ5_1:
      return QuantizeSmallBlocks<BlockQ5_1>(x, n, out);
    case WeightType::kQ8_0:
      return QuantizeSmallBlocks<BlockQ8_0>(x, n, out);
    case WeightType::kIQ4_NL:
      return QuantizeSmallBlocks<BlockIQ4_NL>(x, n, out);
    case WeightType::kMXFP4:
      return QuantizeSmallBlocks<BlockMXFP4>(x, n, out);
    case WeightType::kIQ4_XS:
      return QuantizeSuperBlocks<BlockIQ4_XS>(x, n, out);
    case WeightType::kQ2_K:
      return QuantizeSuperBlocks<BlockQ2_K>(x, n, out);
    case WeightType::kQ3_K:
      return QuantizeSuperBlocks<BlockQ3_K>(x, n, out);
    case WeightType::kQ4_K:
      return QuantizeSuperBlocks<BlockQ4_K>(x, n, out);
    case WeightType::kQ5_K:
      return QuantizeSuperBlocks<BlockQ5_K>(x, n, out);
    case WeightType::kQ6_K:
      return QuantizeSuperBlocks<BlockQ6_K>(x, n, out);
    case WeightType::kIQ2_XXS:
    case WeightType::kIQ2_XS:
    case WeightType::kIQ2_S:
    case WeightType::kIQ3_XXS:
    case WeightType::kIQ3_S:
      assert(false);
  }
}

}  // namespace inlay
