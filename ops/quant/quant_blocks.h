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
inline constexpr int8_t kIq4NlValues[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                            1,    13,   25,  38,  53,  69,  89,  113};

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

static_assert(sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20 && sizeof(BlockQ5_0) == 22);
static_assert(sizeof(BlockQ5_1) == 24 && sizeof(BlockQ8_0) == 34 && sizeof(BlockIQ4_NL) == 18);
static_assert(sizeof(BlockQ2_K) == 84 && sizeof(BlockQ3_K) == 110 && sizeof(BlockQ4_K) == 144);
static_assert(sizeof(BlockQ5_K) == 176 && sizeof(BlockQ6_K) == 210);

}  // namespace inlay

#endif  // INLAY_OPS_QUANT_QUANT_BLOCKS_H_
