// The quantization blocks of GGUF's weight types, byte for byte.
#ifndef INLAY_OPS_QUANT_QUANT_BLOCKS_H_
#define INLAY_OPS_QUANT_QUANT_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ops/quant/float16.h"

namespace inlay {

// All members are bytes, so that a block may lie at any address. A scale is a little-endian f16.
struct F16Bytes {
  uint8_t bytes[2];

  uint16_t Bits() const { return static_cast<uint16_t>(bytes[0] | bytes[1] << 8); }
  float Value() const { return FloatFromF16(Bits()); }
  void Set(float value) {
    const uint16_t f16 = F16FromFloat(value);
    bytes[0] = static_cast<uint8_t>(f16);
    bytes[1] = static_cast<uint8_t>(f16 >> 8);
  }
};

// Number k of nibbles, two in a byte, low first.
inline int NibbleOf(const uint8_t* bytes, size_t k) { return bytes[k / 2] >> (4 * (k % 2)) & 15; }

// Elements of the two kinds of blocks.
inline constexpr size_t kSmallBlock = 32;
inline constexpr size_t kSuperBlock = 256;

// In the small blocks element i < 16 is the low nibble of byte i, element i + 16 its high nibble;
// `high` holds the fifth bits, that of element i in bit i of the little-endian word.

struct BlockQ4_0 {  // d (q - 8)
  F16Bytes d;
  uint8_t nibbles[16];
};

struct BlockQ4_1 {  // d q + m
  F16Bytes d;
  F16Bytes m;
  uint8_t nibbles[16];
};

struct BlockQ5_0 {  // d (q - 16)
  F16Bytes d;
  uint8_t high[4];
  uint8_t nibbles[16];
};

struct BlockQ5_1 {  // d q + m
  F16Bytes d;
  F16Bytes m;
  uint8_t high[4];
  uint8_t nibbles[16];
};

struct BlockQ8_0 {  // d q
  F16Bytes d;
  int8_t quants[32];
};

struct BlockIQ4_NL {  // d table[q]
  F16Bytes d;
  uint8_t nibbles[16];
};

// The values of IQ4_NL, denser around zero.
alignas(16) inline constexpr int8_t kIq4NlValues[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                        1,    13,   25,  38,  53,  69,  89,  113};

struct BlockMXFP4 {  // 2^(e - 128) table[q] (OCP Microscaling Formats 1.0; values doubled)
  uint8_t e;
  uint8_t nibbles[16];

  // 2^(e - 128), subnormal for e < 2. The format's NaN, 255, counts as 2^127.
  float Scale() const {
    const uint32_t bits = e < 2 ? uint32_t{0x00200000} << e : static_cast<uint32_t>(e - 1) << 23;
    float scale;
    std::memcpy(&scale, &bits, sizeof(scale));
    return scale;
  }
};

// Twice the values of a float of 4 bits (E2M1).
alignas(16) inline constexpr int8_t kFp4Values[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                                      0, -1, -2, -3, -4, -6, -8, -12};

// The super-blocks hold two halves of 128 elements for the 2-, 3- and 6-bit types, whose elements
// e = 32 g + i of a half lie in bits [2 g, 2 g + 2) of byte i; for the 4- and 5-bit types four
// quarters of 64 elements, whose elements i and i + 32 are the nibbles of byte i.

struct BlockQ2_K {  // (d s) q - (m t), per 16 elements a byte holding the nibbles s (low) and t
  uint8_t scales[16];
  uint8_t bits[64];
  F16Bytes d;
  F16Bytes m;
};

struct BlockQ3_K {     // (d (s - 32)) (q - 4) with 6-bit s per 16 elements
  uint8_t high[32];    // third bits: that of element 32 g + i in bit g of byte i
  uint8_t bits[64];    // the lower two
  uint8_t scales[12];  // low nibbles of s_0..7, of s_8..15 as high nibbles, then the top two bits:
                       // those of s_k in bits [2 (k / 4), 2 (k / 4) + 2) of byte 8 + k % 4
  F16Bytes d;

  int Scale(size_t k) const {
    const int low = k < 8 ? scales[k] & 15 : scales[k - 8] >> 4;
    const int high = scales[8 + k % 4] >> (2 * (k / 4)) & 3;
    return (low | high << 4) - 32;
  }
};

// The 6-bit scales s_0..7 and t_0..7 of Q4_K and Q5_K in 12 bytes: the low six bits of bytes 0..3
// are s_0..3 and those of bytes 4..7 are t_0..3; bytes 8..11 hold the low nibbles of s_4..7 (low)
// and t_4..7 (high), whose top two bits are those of bytes 0..3 and 4..7.
struct PackedScales {
  uint8_t bytes[12];

  uint8_t Scale(size_t k) const {
    return k < 4 ? bytes[k] & 63 : (bytes[k + 4] & 15) | (bytes[k - 4] >> 6) << 4;
  }
  uint8_t Min(size_t k) const {
    return k < 4 ? bytes[k + 4] & 63 : bytes[k + 4] >> 4 | (bytes[k] >> 6) << 4;
  }
  // To be called for k = 0 .. 7 in this order, with values below 64.
  void Set(size_t k, uint8_t scale, uint8_t min) {
    if (k < 4) {
      bytes[k] = scale;
      bytes[k + 4] = min;
    } else {
      bytes[k + 4] = static_cast<uint8_t>((scale & 15) | (min & 15) << 4);
      bytes[k - 4] |= static_cast<uint8_t>(scale >> 4 << 6);
      bytes[k] |= static_cast<uint8_t>(min >> 4 << 6);
    }
  }
};

struct BlockQ4_K {  // (d s) q - (m t), per 32 elements
  F16Bytes d;
  F16Bytes m;
  PackedScales scales;
  uint8_t nibbles[128];
};

struct BlockQ5_K {  // (d s) q - (m t), per 32 elements
  F16Bytes d;
  F16Bytes m;
  PackedScales scales;
  uint8_t high[32];  // fifth bits: that of element 32 g + i in bit g of byte i
  uint8_t nibbles[128];
};

struct BlockQ6_K {       // (d s) (q - 32) with 8-bit s per 16 elements
  uint8_t nibbles[128];  // of each half of 128: byte i < 64 holds elements i and i + 64
  uint8_t high[64];      // the upper two bits, laid out as elements of the 2-bit types
  int8_t scales[16];
  F16Bytes d;
};

struct BlockIQ4_XS {  // (d (s - 32)) table[q] of IQ4_NL with 6-bit s per 32 elements
  F16Bytes d;
  uint8_t scales_high[2];  // the top two bits of s_k in bits [2 k, 2 k + 2) of the word
  uint8_t scales_low[4];   // the low four bits: s_k in byte k / 2, low nibble first
  uint8_t nibbles[128];    // 16 bytes per 32 elements, as in the small blocks

  int Scale(size_t k) const {
    const int low = NibbleOf(scales_low, k);
    const int high = scales_high[k / 4] >> (2 * (k % 4)) & 3;
    return (low | high << 4) - 32;
  }
};

// The IQ2 and IQ3 types store magnitudes as indices into tables of 8 or 4 of them, the grids
// (ops/quant/grids.h), and signs apart: bit i of a byte is that of element i of 8. Where a byte has
// 7 bits, the eighth makes the number of minuses even.

struct BlockIQ2_XXS {  // (d (2 s + 1) / 8) (+- magnitude) with 4-bit s per 32 elements
  F16Bytes d;
  struct {  // per 32 elements
    uint8_t grid[4];
    uint8_t signs[4];  // four times 7 bits of signs, then s, in a little-endian word
  } groups[8];

  int FourBits(size_t k) const { return groups[k].signs[3] >> 4; }
};

struct BlockIQ2_XS {  // the same with s per 16 elements
  F16Bytes d;
  uint8_t grid[64];   // little-endian words: 9 bits of index, 7 of signs
  uint8_t scales[8];  // nibbles, low first
};

struct BlockIQ2_S {  // the same with all signs stored
  F16Bytes d;
  uint8_t grid[32];   // low 8 bits of the indices
  uint8_t signs[32];  // a byte per 8 elements
  uint8_t high[8];    // the top two bits of index 4 k + i in bits [2 i, 2 i + 2) of byte k
  uint8_t scales[8];  // nibbles, low first
};

struct BlockIQ3_XXS {  // (d (2 s + 1) / 4) (+- magnitude) with 4-bit s per 32 elements
  F16Bytes d;
  uint8_t grid[64];     // indices, each of 4 elements
  uint8_t signs[8][4];  // as in BlockIQ2_XXS

  int Scale(size_t k) const { return 2 * (signs[k][3] >> 4) + 1; }
};

struct BlockIQ3_S {  // (d (2 s + 1)) (+- magnitude) with 4-bit s per 32 elements
  F16Bytes d;
  uint8_t grid[64];   // low 8 bits of the indices
  uint8_t high[8];    // the ninth bit of index 8 k + i in bit i of byte k
  uint8_t signs[32];  // a byte per 8 elements
  uint8_t scales[4];  // nibbles, low first

  int Scale(size_t k) const { return 2 * NibbleOf(scales, k) + 1; }
};

static_assert(sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20 && sizeof(BlockQ5_0) == 22);
static_assert(sizeof(BlockQ5_1) == 24 && sizeof(BlockQ8_0) == 34 && sizeof(BlockIQ4_NL) == 18);
static_assert(sizeof(BlockQ2_K) == 84 && sizeof(BlockQ3_K) == 110 && sizeof(BlockQ4_K) == 144);
static_assert(sizeof(BlockMXFP4) == 17 && sizeof(BlockIQ4_XS) == 136 && sizeof(BlockIQ2_S) == 82);
static_assert(sizeof(BlockIQ2_XXS) == 66 && sizeof(BlockIQ2_XS) == 74);
static_assert(sizeof(BlockIQ3_XXS) == 98 && sizeof(BlockIQ3_S) == 110);
static_assert(sizeof(BlockQ5_K) == 176 && sizeof(BlockQ6_K) == 210);

}  // namespace inlay

#endif  // INLAY_OPS_QUANT_QUANT_BLOCKS_H_
