#include "ops/quant/quant_unpack.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "hwy/base.h"
#include "ops/quant/grids.h"
#include "ops/quant/quant_blocks.h"

namespace inlay {
namespace {

// The quants are declared not to overlap the blocks: both are bytes, and without that promise the
// compiler vectorises none of these loops.

// Where the scales and offsets of a block's groups are written; nullptr: nowhere.
struct Groups {
  float* scales;
  float* offsets;

  void Set(size_t group, float scale) const {
    if (scales != nullptr) scales[group] = scale;
  }
  void Set(size_t group, float scale, float offset) const {
    if (scales == nullptr) return;
    scales[group] = scale;
    offsets[group] = offset;
  }
  Groups After(size_t groups) const {
    return scales == nullptr ? *this : Groups{scales + groups, offsets + groups};
  }
};

uint32_t Word(const uint8_t (&bytes)[4]) {
  return bytes[0] | bytes[1] << 8 | bytes[2] << 16 | static_cast<uint32_t>(bytes[3]) << 24;
}

void UnpackNibbles(const uint8_t (&nibbles)[16], int zero, int8_t* HWY_RESTRICT q) {
  for (size_t i = 0; i < 16; ++i) {
    q[i] = static_cast<int8_t>((nibbles[i] & 15) - zero);
    q[i + 16] = static_cast<int8_t>((nibbles[i] >> 4) - zero);
  }
}

void AddFifthBits(const uint8_t (&high)[4], int8_t* HWY_RESTRICT q) {
  const uint32_t word = Word(high);
  for (size_t i = 0; i < 32; ++i) q[i] = static_cast<int8_t>(q[i] + (word >> i & 1) * 16);
}

void Unpack(const BlockQ4_0& block, int8_t* HWY_RESTRICT q, Groups groups) {
  UnpackNibbles(block.nibbles, 8, q);
  groups.Set(0, block.d.Value());
}

void Unpack(const BlockQ4_1& block, int8_t* HWY_RESTRICT q, Groups groups) {
  UnpackNibbles(block.nibbles, 0, q);
  groups.Set(0, block.d.Value(), block.m.Value());
}

void Unpack(const BlockQ5_0& block, int8_t* HWY_RESTRICT q, Groups groups) {
  UnpackNibbles(block.nibbles, 16, q);
  AddFifthBits(block.high, q);
  groups.Set(0, block.d.Value());
}

void Unpack(const BlockQ5_1& block, int8_t* HWY_RESTRICT q, Groups groups) {
  UnpackNibbles(block.nibbles, 0, q);
  AddFifthBits(block.high, q);
  groups.Set(0, block.d.Value(), block.m.Value());
}

void Unpack(const BlockQ8_0& block, int8_t* HWY_RESTRICT q, Groups groups) {
  std::copy_n(block.quants, 32, q);
  groups.Set(0, block.d.Value());
}

// Nibbles that are indices into a table, of 32 elements.
void LookUpNibbles(const int8_t (&values)[16], const uint8_t* nibbles, int8_t* HWY_RESTRICT q) {
  for (size_t i = 0; i < 16; ++i) {
    q[i] = values[nibbles[i] & 15];
    q[i + 16] = values[nibbles[i] >> 4];
  }
}

void Unpack(const BlockIQ4_NL& block, int8_t* HWY_RESTRICT q, Groups groups) {
  LookUpNibbles(kIq4NlValues, block.nibbles, q);
  groups.Set(0, block.d.Value());
}

void Unpack(const BlockMXFP4& block, int8_t* HWY_RESTRICT q, Groups groups) {
  LookUpNibbles(kFp4Values, block.nibbles, q);
  groups.Set(0, block.Scale());
}

void Unpack(const BlockIQ4_XS& block, int8_t* HWY_RESTRICT q, Groups groups) {
  const float d = block.d.Value();
  for (size_t k = 0; k < 8; ++k) {
    LookUpNibbles(kIq4NlValues, block.nibbles + 16 * k, q + 32 * k);
    groups.Set(k, d * static_cast<float>(block.Scale(k)));
  }
}

// Two-bit fields of two halves of 128 elements.
void UnpackPairs(const uint8_t (&bits)[64], int8_t* HWY_RESTRICT q) {
  for (size_t half = 0; half < 2; ++half) {
    for (size_t g = 0; g < 4; ++g) {
      for (size_t i = 0; i < 32; ++i) {
        q[128 * half + 32 * g + i] = static_cast<int8_t>(bits[32 * half + i] >> (2 * g) & 3);
      }
    }
  }
}

void Unpack(const BlockQ2_K& block, int8_t* HWY_RESTRICT q, Groups groups) {
  UnpackPairs(block.bits, q);
  const float d = block.d.Value(), m = block.m.Value();
  for (size_t k = 0; k < 16; ++k) {
    groups.Set(k, d * static_cast<float>(block.scales[k] & 15),
               -(m * static_cast<float>(block.scales[k] >> 4)));
  }
}

void Unpack(const BlockQ3_K& block, int8_t* HWY_RESTRICT q, Groups groups) {
  UnpackPairs(block.bits, q);
  for (size_t g = 0; g < 8; ++g) {
    for (size_t i = 0; i < 32; ++i) {
      q[32 * g + i] = static_cast<int8_t>(q[32 * g + i] + (block.high[i] >> g & 1) * 4 - 4);
    }
  }
  const float d = block.d.Value();
  for (size_t k = 0; k < 16; ++k) {
    groups.Set(k, d * static_cast<float>(block.Scale(k)));
  }
}

// Nibbles of four quarters of 64 elements.
void UnpackQuarters(const uint8_t (&nibbles)[128], int8_t* HWY_RESTRICT q) {
  for (size_t quarter = 0; quarter < 4; ++quarter) {
    for (size_t i = 0; i < 32; ++i) {
      const uint8_t byte = nibbles[32 * quarter + i];
      q[64 * quarter + i] = static_cast<int8_t>(byte & 15);
      q[64 * quarter + 32 + i] = static_cast<int8_t>(byte >> 4);
    }
  }
}

void SetPackedScales(const PackedScales& scales, F16Bytes d, F16Bytes m, Groups groups) {
  const float d_value = d.Value(), m_value = m.Value();
  for (size_t k = 0; k < 8; ++k) {
    groups.Set(k, d_value * static_cast<float>(scales.Scale(k)),
               -(m_value * static_cast<float>(scales.Min(k))));
  }
}

void Unpack(const BlockQ4_K& block, int8_t* HWY_RESTRICT q, Groups groups) {
  UnpackQuarters(block.nibbles, q);
  SetPackedScales(block.scales, block.d, block.m, groups);
}

void Unpack(const BlockQ5_K& block, int8_t* HWY_RESTRICT q, Groups groups) {
  UnpackQuarters(block.nibbles, q);
  for (size_t g = 0; g < 8; ++g) {
    for (size_t i = 0; i < 32; ++i) {
      q[32 * g + i] = static_cast<int8_t>(q[32 * g + i] + (block.high[i] >> g & 1) * 16);
    }
  }
  SetPackedScales(block.scales, block.d, block.m, groups);
}

void Unpack(const BlockQ6_K& block, int8_t* HWY_RESTRICT q, Groups groups) {
  UnpackPairs(block.high, q);
  for (size_t half = 0; half < 2; ++half) {
    for (size_t i = 0; i < 64; ++i) {
      const uint8_t byte = block.nibbles[64 * half + i];
      int8_t& low = q[128 * half + i];
      int8_t& high = q[128 * half + 64 + i];
      low = static_cast<int8_t>((low * 16 | (byte & 15)) - 32);
      high = static_cast<int8_t>((high * 16 | byte >> 4) - 32);
    }
  }
  const float d = block.d.Value();
  for (size_t k = 0; k < 16; ++k) groups.Set(k, d * static_cast<float>(block.scales[k]));
}

float EighthScale(float d, int s) { return d * static_cast<float>(2 * s + 1) * 0.125f; }

// The signs of 8 elements from 7 stored ones: the number of minuses is even.
uint8_t EvenSigns(uint32_t seven) {
  return static_cast<uint8_t>(seven | (std::popcount(seven) & 1) << 7);
}

// Eight elements of the IQ2 types.
void UnpackEight(uint16_t entry, uint8_t signs, int8_t* HWY_RESTRICT q) {
  for (size_t i = 0; i < 8; ++i) {
    q[i] = kIq2Values[(entry >> (2 * i) & 3) | (signs >> i & 1) << 2];
  }
}

// Eight elements of the IQ3 types, four of each entry.
void UnpackFours(const int8_t (&values)[16], uint16_t first, uint16_t second, uint8_t signs,
                 int8_t* HWY_RESTRICT q) {
  const uint32_t levels = first | static_cast<uint32_t>(second) << 12;
  for (size_t i = 0; i < 8; ++i) {
    q[i] = values[(levels >> (3 * i) & 7) | (signs >> i & 1) << 3];
  }
}

void Unpack(const BlockIQ2_XXS& block, int8_t* HWY_RESTRICT q, Groups groups) {
  const float d = block.d.Value();
  for (size_t k = 0; k < 8; ++k) {
    const uint32_t word = Word(block.groups[k].signs);
    for (size_t i = 0; i < 4; ++i) {
      UnpackEight(kIq2XxsGrid[block.groups[k].grid[i]], EvenSigns(word >> (7 * i) & 127),
                  q + 32 * k + 8 * i);
    }
    groups.Set(k, EighthScale(d, block.FourBits(k)));
  }
}

void Unpack(const BlockIQ2_XS& block, int8_t* HWY_RESTRICT q, Groups groups) {
  for (size_t i = 0; i < 32; ++i) {
    const int word = block.grid[2 * i] | block.grid[2 * i + 1] << 8;
    UnpackEight(kIq2XsGrid[word & 511], EvenSigns(static_cast<uint32_t>(word >> 9)), q + 8 * i);
  }
  const float d = block.d.Value();
  for (size_t k = 0; k < 16; ++k) groups.Set(k, EighthScale(d, NibbleOf(block.scales, k)));
}

void Unpack(const BlockIQ2_S& block, int8_t* HWY_RESTRICT q, Groups groups) {
  for (size_t i = 0; i < 32; ++i) {
    const int high = block.high[i / 4] >> (2 * (i % 4)) & 3;
    UnpackEight(kIq2SGrid[block.grid[i] | high << 8], block.signs[i], q + 8 * i);
  }
  const float d = block.d.Value();
  for (size_t k = 0; k < 16; ++k) groups.Set(k, EighthScale(d, NibbleOf(block.scales, k)));
}

void Unpack(const BlockIQ3_XXS& block, int8_t* HWY_RESTRICT q, Groups groups) {
  const float d = block.d.Value();
  for (size_t k = 0; k < 8; ++k) {
    const uint32_t word = Word(block.signs[k]);
    for (size_t i = 0; i < 4; ++i) {
      const uint8_t* grid = block.grid + 8 * k + 2 * i;
      UnpackFours(kIq3XxsValues, kIq3XxsGrid[grid[0]], kIq3XxsGrid[grid[1]],
                  EvenSigns(word >> (7 * i) & 127), q + 32 * k + 8 * i);
    }
    groups.Set(k, d * static_cast<float>(block.Scale(k)) * 0.25f);
  }
}

void Unpack(const BlockIQ3_S& block, int8_t* HWY_RESTRICT q, Groups groups) {
  const auto entry = [&](size_t i) {
    return kIq3SGrid[block.grid[i] | (block.high[i / 8] >> (i % 8) & 1) << 8];
  };
  for (size_t i = 0; i < 32; ++i) {
    UnpackFours(kIq3SValues, entry(2 * i), entry(2 * i + 1), block.signs[i], q + 8 * i);
  }
  const float d = block.d.Value();
  for (size_t k = 0; k < 8; ++k) groups.Set(k, d * static_cast<float>(block.Scale(k)));
}

template <class Block, size_t kBlockSize, size_t kGroup>
void UnpackAll(const void* row, size_t cols, int8_t* quants, Groups groups) {
  assert(cols % kBlockSize == 0);
  const Block* blocks = static_cast<const Block*>(row);
  for (size_t b = 0; b < cols / kBlockSize; ++b) {
    Unpack(blocks[b], quants + b * kBlockSize, groups.After(b * (kBlockSize / kGroup)));
  }
}

}  // namespace

UnpackedShape GetUnpackedShape(WeightType type) {
  switch (type) {
    case WeightType::kQ2_K:
      return {16, true};
    case WeightType::kQ3_K:
    case WeightType::kQ6_K:
    case WeightType::kIQ2_XS:
    case WeightType::kIQ2_S:
      return {16, false};
    case WeightType::kQ4_1:
    case WeightType::kQ5_1:
    case WeightType::kQ4_K:
    case WeightType::kQ5_K:
      return {32, true};
    default:
      return {32, false};
  }
}

void UnpackRow(WeightType type, const void* row, size_t cols, int8_t* quants, float* scales,
               float* offsets) {
  const Groups groups = {scales, offsets};
  switch (type) {
    case WeightType::kQ4_0:
      return UnpackAll<BlockQ4_0, 32, 32>(row, cols, quants, groups);
    case WeightType::kQ4_1:
      return UnpackAll<BlockQ4_1, 32, 32>(row, cols, quants, groups);
    case WeightType::kQ5_0:
      return UnpackAll<BlockQ5_0, 32, 32>(row, cols, quants, groups);
    case WeightType::kQ5_1:
      return UnpackAll<BlockQ5_1, 32, 32>(row, cols, quants, groups);
    case WeightType::kQ8_0:
      return UnpackAll<BlockQ8_0, 32, 32>(row, cols, quants, groups);
    case WeightType::kIQ4_NL:
      return UnpackAll<BlockIQ4_NL, 32, 32>(row, cols, quants, groups);
    case WeightType::kMXFP4:
      return UnpackAll<BlockMXFP4, 32, 32>(row, cols, quants, groups);
    case WeightType::kIQ4_XS:
      return UnpackAll<BlockIQ4_XS, 256, 32>(row, cols, quants, groups);
    case WeightType::kIQ3_XXS:
      return UnpackAll<BlockIQ3_XXS, 256, 32>(row, cols, quants, groups);
    case WeightType::kIQ3_S:
      return UnpackAll<BlockIQ3_S, 256, 32>(row, cols, quants, groups);
    case WeightType::kIQ2_XXS:
      return UnpackAll<BlockIQ2_XXS, 256, 32>(row, cols, quants, groups);
    case WeightType::kIQ2_XS:
      return UnpackAll<BlockIQ2_XS, 256, 16>(row, cols, quants, groups);
    case WeightType::kIQ2_S:
      return UnpackAll<BlockIQ2_S, 256, 16>(row, cols, quants, groups);
    case WeightType::kQ2_K:
      return UnpackAll<BlockQ2_K, 256, 16>(row, cols, quants, groups);
    case WeightType::kQ3_K:
      return UnpackAll<BlockQ3_K, 256, 16>(row, cols, quants, groups);
    case WeightType::kQ4_K:
      return UnpackAll<BlockQ4_K, 256, 32>(row, cols, quants, groups);
    case WeightType::kQ5_K:
      return UnpackAll<BlockQ5_K, 256, 32>(row, cols, quants, groups);
    case WeightType::kQ6_K:
      return UnpackAll<BlockQ6_K, 256, 16>(row, cols, quants, groups);
    case WeightType::kF32:
    case WeightType::kF16:
    case WeightType::kBF16:
      assert(false);
  }
}

void DequantizeBlocks(WeightType type, const void* row, size_t cols, float* out) {
  const WeightTypeInfo& info = GetWeightTypeInfo(type);
  const UnpackedShape shape = GetUnpackedShape(type);
  int8_t quants[kSuperBlock];
  float scales[16], offsets[16];
  assert(cols % info.block_size == 0);
  for (size_t b = 0; b < cols / info.block_size; ++b) {
    const void* block = static_cast<const char*>(row) + b * info.block_bytes;
    UnpackRow(type, block, info.block_size, quants, scales, offsets);
    for (size_t i = 0; i < info.block_size; ++i) {
      const float scaled = scales[i / shape.group] * static_cast<float>(quants[i]);
      // Adding an offset of zero where there is none would turn -0 into 0.
      *out++ = shape.has_offsets ? scaled + offsets[i / shape.group] : scaled;
    }
  }
}

}  // namespace inlay
