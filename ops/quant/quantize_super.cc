#include "ops/quant/quantize_super.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "ops/quant/fit_groups.h"
#include "ops/quant/quant_fit.h"

namespace inlay {
namespace {

using Levels = uint8_t[kSuperBlock];

// The largest of the values that are above 0; 0 if there is none.
template <size_t kCount>
float LargestOrZero(const float (&values)[kCount]) {
  float largest = 0;
  for (const float value : values) {
    if (value > largest) largest = value;
  }
  return largest;
}

void Group16(const float* x, size_t group, float (&values)[16]) {
  std::copy_n(x + 16 * group, 16, values);
}

void PackPairs(const Levels& levels, uint8_t (&bits)[64]) {
  for (size_t half = 0; half < 2; ++half) {
    for (size_t i = 0; i < 32; ++i) {
      const uint8_t* l = levels + 128 * half + i;
      bits[32 * half + i] =
          static_cast<uint8_t>((l[0] & 3) | (l[32] & 3) << 2 | (l[64] & 3) << 4 | (l[96] & 3) << 6);
    }
  }
}

// Bit `bit` of the levels: that of element 32 g + i goes to bit g of byte i.
void PackPlane(const Levels& levels, int bit, uint8_t (&plane)[32]) {
  for (size_t i = 0; i < 32; ++i) {
    plane[i] = 0;
    for (size_t g = 0; g < 8; ++g) {
      plane[i] |= static_cast<uint8_t>((levels[32 * g + i] >> bit & 1) << g);
    }
  }
}

void PackQuarters(const Levels& levels, uint8_t (&nibbles)[128]) {
  for (size_t quarter = 0; quarter < 4; ++quarter) {
    for (size_t i = 0; i < 32; ++i) {
      const uint8_t* l = levels + 64 * quarter + i;
      nibbles[32 * quarter + i] = static_cast<uint8_t>((l[0] & 15) | (l[32] & 15) << 4);
    }
  }
}

// Q4_K and Q5_K up to the packing of levels: eight groups of 32, six-bit scales and minima.
void FitGroupsOf32(const AffineSearch& search, const float* x, F16Bytes* d, F16Bytes* m,
                   PackedScales* packed, Levels& levels) {
  float scales[8], mins[8];
  FitAffineGroups(search, x, scales, mins, levels);
  const float max_scale = LargestOrZero(scales), max_min = LargestOrZero(mins);
  const float inverse_scale = max_scale > 0 ? 63.0f / max_scale : 0;
  const float inverse_min = max_min > 0 ? 63.0f / max_min : 0;
  for (size_t k = 0; k < 8; ++k) {
    packed->Set(k, static_cast<uint8_t>(RoundWithin(inverse_scale * scales[k], 0, 63)),
                static_cast<uint8_t>(RoundWithin(inverse_min * mins[k], 0, 63)));
  }
  d->Set(max_scale / 63.0f);
  m->Set(max_min / 63.0f);
  // Computes the levels again, for the rounded scales.
  for (size_t k = 0; k < 8; ++k) {
    const float scale = d->Value() * static_cast<float>(packed->Scale(k));
    if (scale == 0) continue;
    const float min = m->Value() * static_cast<float>(packed->Min(k));
    for (size_t i = 32 * k; i < 32 * (k + 1); ++i) {
      levels[i] = static_cast<uint8_t>(RoundWithin((x[i] + min) / scale, 0, search.max_level));
    }
  }
}

}  // namespace

void QuantizeSuperBlock(const float* x, BlockQ2_K* block) {
  constexpr AffineSearch kSearch = {3, -0.5f, 15, true};
  Levels levels;
  float scales[16], mins[16];
  FitAffineGroups(kSearch, x, scales, mins, levels);
  const float max_scale = LargestOrZero(scales), max_min = LargestOrZero(mins);
  const float inverse_scale = max_scale > 0 ? 15.0f / max_scale : 0;
  const float inverse_min = max_min > 0 ? 15.0f / max_min : 0;
  for (size_t k = 0; k < 16; ++k) {
    block->scales[k] = static_cast<uint8_t>(RoundWithin(inverse_scale * scales[k], 0, 15) |
                                            RoundWithin(inverse_min * mins[k], 0, 15) << 4);
  }
  block->d.Set(max_scale > 0 ? max_scale / 15.0f : 0);
  block->m.Set(max_min > 0 ? max_min / 15.0f : 0);
  for (size_t k = 0; k < 16; ++k) {
    const float scale = block->d.Value() * static_cast<float>(block->scales[k] & 15);
    if (scale == 0) continue;
    const float min = block->m.Value() * static_cast<float>(block->scales[k] >> 4);
    for (size_t i = 16 * k; i < 16 * (k + 1); ++i) {
      levels[i] = static_cast<uint8_t>(RoundWithin((x[i] + min) / scale, 0, 3));
    }
  }
  PackPairs(levels, block->bits);
}

void QuantizeSuperBlock(const float* x, BlockQ3_K* block) {
  Levels levels;
  float scales[16];
  for (size_t k = 0; k < 16; ++k) {
    float group[16];
    Group16(x, k, group);
    scales[k] = FitThreeBits(group, levels + 16 * k);
  }
  const float extreme = Extreme(scales, 16);
  const float inverse = extreme != 0 ? -32.0f / extreme : 0;
  block->d.Set(extreme != 0 ? 1 / inverse : 0);
  std::memset(block->scales, 0, sizeof(block->scales));
  for (size_t k = 0; k < 16; ++k) {
    // If all scales are zero the packed bytes stay zero, which stands for -32.
    const int s = extreme != 0 ? RoundWithin(inverse * scales[k], -32, 31) : -32;
    const int packed = s + 32;
    block->scales[k % 8] |= static_cast<uint8_t>((packed & 15) << (k < 8 ? 0 : 4));
    block->scales[8 + k % 4] |= static_cast<uint8_t>(packed >> 4 << (2 * (k / 4)));
    const float scale = block->d.Value() * static_cast<float>(s);
    if (scale == 0) continue;
    for (size_t i = 16 * k; i < 16 * (k + 1); ++i) {
      levels[i] = static_cast<uint8_t>(RoundWithin(x[i] / scale, -4, 3) + 4);
    }
  }
  PackPairs(levels, block->bits);
  PackPlane(levels, 2, block->high);
}

void QuantizeSuperBlock(const float* x, BlockQ4_K* block) {
  Levels levels;
  FitGroupsOf32({15, -1.0f, 20, false}, x, &block->d, &block->m, &block->scales, levels);
  PackQuarters(levels, block->nibbles);
}

void QuantizeSuperBlock(const float* x, BlockQ5_K* block) {
  Levels levels;
  FitGroupsOf32({31, -0.5f, 15, false}, x, &block->d, &block->m, &block->scales, levels);
  PackQuarters(levels, block->nibbles);
  PackPlane(levels, 4, block->high);
}

void QuantizeSuperBlock(const float* x, BlockQ6_K* block) {
  Levels levels;
  float scales[16];
  FitSixBitGroups(x, scales, levels);
  const float extreme = Extreme(scales, 16);
  if (!(std::abs(extreme) >= kNegligible)) {
    std::memset(block, 0, sizeof(*block));
    return;
  }
  const float inverse = -128.0f / extreme;
  block->d.Set(1 / inverse);
  for (size_t k = 0; k < 16; ++k) {
    block->scales[k] = static_cast<int8_t>(RoundWithin(inverse * scales[k], -128, 127));
    const float scale = block->d.Value() * static_cast<float>(block->scales[k]);
    if (scale == 0) continue;
    for (size_t i = 16 * k; i < 16 * (k + 1); ++i) {
      levels[i] = static_cast<uint8_t>(RoundWithin(x[i] / scale, -32, 31) + 32);
    }
  }
  for (size_t half = 0; half < 2; ++half) {
    for (size_t i = 0; i < 64; ++i) {
      const uint8_t* l = levels + 128 * half + i;
      block->nibbles[64 * half + i] = static_cast<uint8_t>((l[0] & 15) | (l[64] & 15) << 4);
    }
  }
  Levels high;
  for (size_t i = 0; i < kSuperBlock; ++i) high[i] = levels[i] >> 4;
  PackPairs(high, block->high);
}

void QuantizeSuperBlock(const float* x, BlockIQ4_XS* block) {
  float scales[8];
  for (size_t k = 0; k < 8; ++k) {
    float group[32];
    std::copy_n(x + 32 * k, 32, group);
    scales[k] = FitIq4Nl(group);
  }
  const float d = -Extreme(scales, 8) / 32;
  const float inverse = d != 0 ? 1 / d : 0;
  block->d.Set(d);
  std::memset(block->scales_high, 0, sizeof(block->scales_high));
  std::memset(block->scales_low, 0, sizeof(block->scales_low));
  for (size_t k = 0; k < 8; ++k) {
    const int s = RoundWithin(inverse * scales[k], -32, 31);
    const int stored = s + 32;
    block->scales_low[k / 2] |= static_cast<uint8_t>((stored & 15) << (4 * (k % 2)));
    block->scales_high[k / 4] |= static_cast<uint8_t>(stored >> 4 << (2 * (k % 4)));
    // Levels are chosen by d before it is rounded to f16.
    const float scale = d * static_cast<float>(s);
    const float inverse_scale = scale != 0 ? 1 / scale : 0;
    for (size_t i = 0; i < 16; ++i) {
      const float* low = x + 32 * k + i;
      block->nibbles[16 * k + i] = static_cast<uint8_t>(NearestIq4Nl(inverse_scale * low[0]) |
                                                        NearestIq4Nl(inverse_scale * low[16]) << 4);
    }
  }
}

}  // namespace inlay
