#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ops/quant/dequantize.h"
#include "ops/quant/float16.h"
#include "ops/quant/grids.h"
#include "ops/quant/quant_unpack.h"
#include "ops/quant/quantize.h"
#include "tests/ops/op_test.h"
#include "tests/ops/quant/quant_rows.h"
#include "tests/ops/quant/quantized_weights.h"

namespace inlay {
namespace {

float F16(const uint8_t* p) {
  return static_cast<float>(HalfValue(static_cast<uint16_t>(p[0] | p[1] << 8)));
}

int Nibble(const uint8_t* p, size_t i) { return i < 16 ? p[i] & 15 : p[i - 16] >> 4; }

int Bit(const uint8_t* p, size_t i) { return p[i / 8] >> (i % 8) & 1; }

// Two bits of element i of 256: bytes of 32 elements each, four times two bits, two halves.
int Pair(const uint8_t* p, size_t i) { return p[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3; }

// Scale (or, with `min`, minimum) k of the 12 bytes of Q4_K and Q5_K.
int SixBits(const uint8_t* p, size_t k, bool min) {
  if (k < 4) return p[k + (min ? 4 : 0)] & 63;
  const int low = min ? p[k + 4] >> 4 : p[k + 4] & 15;
  return low + 16 * (p[k - 4 + (min ? 4 : 0)] >> 6);
}

constexpr int kIq4Values[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                              1,    13,   25,  38,  53,  69,  89,  113};

// Element i's magnitude in a grid's entry of 8; plus or minus a magnitude, by bit i % 8 of `signs`.
int Iq2Magnitude(int entry, size_t i) {
  const int magnitudes[] = {8, 25, 43};
  return magnitudes[entry >> (i % 8 * 2) & 3];
}
float Signed(int magnitude, int signs, size_t i) {
  return static_cast<float>((signs >> (i % 8) & 1) != 0 ? -magnitude : magnitude);
}

// Seven bits of signs with the eighth, which makes their number even; those number k in a word.
int Eighth(int signs) {
  int parity = 0;
  for (int bit = 0; bit < 7; ++bit) parity ^= signs >> bit & 1;
  return signs | parity << 7;
}
int SevenSigns(const uint8_t* word, size_t k) {
  uint32_t bits;
  std::memcpy(&bits, word, 4);
  return Eighth(static_cast<int>(bits >> (7 * k) & 127));
}

// The nibble of a byte for the first or second 16 of 32 elements.
int Half(uint8_t byte, size_t i) { return i % 32 < 16 ? byte & 15 : byte >> 4; }

// Element i of a block from its bytes, as the format defines it; float operations in its order.
float Element(WeightType type, const uint8_t* b, size_t i) {
  switch (type) {
    case WeightType::kQ8_0:
      return static_cast<float>(static_cast<int8_t>(b[2 + i])) * F16(b);
    case WeightType::kQ4_0:
      return static_cast<float>(Nibble(b + 2, i) - 8) * F16(b);
    case WeightType::kQ4_1:
      return static_cast<float>(Nibble(b + 4, i)) * F16(b) + F16(b + 2);
    case WeightType::kQ5_0:
      return static_cast<float>(Nibble(b + 6, i) + 16 * Bit(b + 2, i) - 16) * F16(b);
    case WeightType::kQ5_1:
      return static_cast<float>(Nibble(b + 8, i) + 16 * Bit(b + 4, i)) * F16(b) + F16(b + 2);
    case WeightType::kIQ4_NL: {
      return F16(b) * static_cast<float>(kIq4Values[Nibble(b + 2, i)]);
    }
    case WeightType::kMXFP4: {
      const int values[] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
      return static_cast<float>(std::ldexp(values[Nibble(b + 1, i)], b[0] - 128));
    }
    case WeightType::kIQ4_XS: {
      const size_t k = i / 32;
      const int low = b[4 + k / 2] >> (k % 2 * 4) & 15, high = b[2 + k / 4] >> (k % 4 * 2) & 3;
      return F16(b) * static_cast<float>(low + 16 * high - 32) *
             static_cast<float>(kIq4Values[Nibble(b + 8 + 16 * k, i % 32)]);
    }
    case WeightType::kIQ2_XXS: {
      const uint8_t* group = b + 2 + i / 32 * 8;
      const float scale = F16(b) * (0.5f + static_cast<float>(group[7] >> 4)) * 0.25f;
      const int signs = SevenSigns(group + 4, i % 32 / 8);
      return scale * Signed(Iq2Magnitude(kIq2XxsGrid[group[i % 32 / 8]], i), signs, i);
    }
    case WeightType::kIQ2_XS: {
      const int word = b[2 + i / 8 * 2] | b[3 + i / 8 * 2] << 8;
      const float scale = F16(b) * (0.5f + static_cast<float>(Half(b[66 + i / 32], i))) * 0.25f;
      return scale * Signed(Iq2Magnitude(kIq2XsGrid[word % 512], i), Eighth(word / 512), i);
    }
    case WeightType::kIQ2_S: {
      const int index = b[2 + i / 8] + 256 * (b[66 + i / 32] >> (i / 8 % 4 * 2) & 3);
      const float scale = F16(b) * (0.5f + static_cast<float>(Half(b[74 + i / 32], i))) * 0.25f;
      return scale * Signed(Iq2Magnitude(kIq2SGrid[index], i), b[34 + i / 8], i);
    }
    case WeightType::kIQ3_XXS: {
      const uint8_t* word = b + 66 + i / 32 * 4;
      const float scale = F16(b) * (0.5f + static_cast<float>(word[3] >> 4)) * 0.5f;
      const int magnitudes[] = {4, 12, 20, 28, 36, 44, 52, 62};
      const int level = kIq3XxsGrid[b[2 + i / 4]] >> (i % 4 * 3) & 7;
      return scale * Signed(magnitudes[level], SevenSigns(word, i % 32 / 8), i);
    }
    case WeightType::kIQ3_S: {
      const int index = b[2 + i / 4] + 256 * Bit(b + 66, i / 4);
      const int s = b[106 + i / 64] >> (i / 32 % 2 * 4) & 15;
      const int level = kIq3SGrid[index] >> (i % 4 * 3) & 7;
      return F16(b) * static_cast<float>(1 + 2 * s) * Signed(1 + 2 * level, b[74 + i / 8], i);
    }
    case WeightType::kQ2_K: {
      const uint8_t scales = b[i / 16];
      const float scale = F16(b + 80) * static_cast<float>(scales & 15);
      const float min = F16(b + 82) * static_cast<float>(scales >> 4);
      return scale * static_cast<float>(Pair(b + 16, i)) - min;
    }
    case WeightType::kQ3_K: {
      const uint8_t* s = b + 96;
      const size_t k = i / 16;
      const int low = (k < 8 ? s[k] : s[k - 8] >> 4) & 15;
      const int high = s[8 + k % 4] >> (k / 4 * 2) & 3;
      const int third = b[i % 32] >> (i / 32) & 1;
      return F16(b + 108) * static_cast<float>(low + 16 * high - 32) *
             static_cast<float>(Pair(b + 32, i) + 4 * third - 4);
    }
    case WeightType::kQ4_K: {
      const uint8_t byte = b[16 + i / 64 * 32 + i % 32];
      const int q = i % 64 < 32 ? byte & 15 : byte >> 4;
      return F16(b) * static_cast<float>(SixBits(b + 4, i / 32, false)) * static_cast<float>(q) -
             F16(b + 2) * static_cast<float>(SixBits(b + 4, i / 32, true));
    }
    case WeightType::kQ5_K: {
      const uint8_t byte = b[48 + i / 64 * 32 + i % 32];
      const int fifth = b[16 + i % 32] >> (i / 32) & 1;
      const int q = (i % 64 < 32 ? byte & 15 : byte >> 4) + 16 * fifth;
      return F16(b) * static_cast<float>(SixBits(b + 4, i / 32, false)) * static_cast<float>(q) -
             F16(b + 2) * static_cast<float>(SixBits(b + 4, i / 32, true));
    }
    case WeightType::kQ6_K: {
      const uint8_t byte = b[i / 128 * 64 + i % 64];
      const int low = i % 128 < 64 ? byte & 15 : byte >> 4;
      const float scale = F16(b + 208) * static_cast<float>(static_cast<int8_t>(b[192 + i / 16]));
      return scale * static_cast<float>(low + 16 * Pair(b + 128, i) - 32);
    }
    default:
      return NAN;
  }
}

class Dequantize : public OnEveryTarget {};
INLAY_ON_PLAIN_TARGETS(Dequantize);

TEST_P(Dequantize, RowsAreBitIdenticalToTheFormats) {
  std::mt19937 generator(1);
  for (WeightType type : QuantizedTypes()) {
    const WeightTypeInfo& info = GetWeightTypeInfo(type);
    const size_t blocks = 40, cols = blocks * info.block_size;
    // Random bytes, at an odd address: every pattern of quants and scales, also halves that are
    // subnormal, infinite or NaN.
    std::vector<uint8_t> bytes(2 * blocks * info.block_bytes + 1);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(generator());
    const WeightMatrix w = {bytes.data() + 1, type, 2, cols};
    std::vector<float> values(cols);
    for (size_t row = 0; row < 2; ++row) {
      DequantizeRow(w, row, values.data());
      for (size_t i = 0; i < cols; ++i) {
        const uint8_t* block = &bytes[1 + (row * blocks + i / info.block_size) * info.block_bytes];
        const float expected = Element(type, block, i % info.block_size);
        if (std::isnan(expected)) {
          ASSERT_TRUE(std::isnan(values[i])) << info.name << ", element " << i;
        } else {
          ASSERT_TRUE(SameBits(&values[i], &expected, 1)) << info.name << ", element " << i;
        }
      }
    }
  }
}

TEST(Quant, BytesAreThoseOfTheReferenceQuantizers) {
  std::ifstream file("tests/ops/quant/testdata/quantized.txt");
  ASSERT_TRUE(file) << "run in the repository's root";
  std::string line;
  int types = 0;
  while (std::getline(file, line)) {
    if (line[0] == '#') continue;
    std::istringstream fields(line);
    std::string name, hash_hex, bytes_hex;
    fields >> name >> hash_hex >> bytes_hex;
    const WeightTypeInfo* info = FindWeightType(name);
    ASSERT_NE(info, nullptr) << name;
    std::vector<uint8_t> bytes(kQuantCols / info->block_size * info->block_bytes);
    uint64_t hash = kHashStart;
    for (size_t r = 0; r < kQuantRows; ++r) {
      QuantizeRow(info->type, QuantRow(r).data(), kQuantCols, bytes.data());
      hash = Hash(hash, bytes.data(), bytes.size());
      if (r != 1) continue;
      for (size_t i = 0; 2 * i < bytes_hex.size(); ++i) {
        ASSERT_EQ(bytes[i], std::stoi(bytes_hex.substr(2 * i, 2), nullptr, 16))
            << name << ", byte " << i;
      }
    }
    EXPECT_EQ(hash, std::stoull(hash_hex, nullptr, 16)) << name;
    ++types;
  }
  EXPECT_EQ(types, 15);
}

// Of types that are only read: the hash of what the reference reads from the same bytes.
TEST(Quant, ValuesAreThoseOfTheReference) {
  std::ifstream file("tests/ops/quant/testdata/dequantized.txt");
  ASSERT_TRUE(file) << "run in the repository's root";
  std::string line;
  size_t types = 0;
  while (std::getline(file, line)) {
    if (line[0] == '#') continue;
    std::istringstream fields(line);
    std::string name, hash_hex;
    fields >> name >> hash_hex;
    const WeightTypeInfo* info = FindWeightType(name);
    ASSERT_NE(info, nullptr) << name;
    std::vector<uint8_t> bytes = QuantBytes(kQuantCols / info->block_size * info->block_bytes);
    for (size_t b = 0; b < bytes.size(); b += info->block_bytes) {
      MakeScalesModerate(info->type, &bytes[b]);
    }
    std::vector<float> values(kQuantCols);
    DequantizeRow({bytes.data(), info->type, 1, kQuantCols}, 0, values.data());
    EXPECT_EQ(Hash(kHashStart, reinterpret_cast<const uint8_t*>(values.data()),
                   values.size() * sizeof(float)),
              std::stoull(hash_hex, nullptr, 16))
        << name;
    ++types;
  }
  EXPECT_EQ(types, QuantizedTypes().size());
}

TEST(Quant, TiesOfQ8_0RoundAwayFromZero) {
  // A scale of exactly 1; round to even would give 0, 2, 2, -2, 126.
  float x[32] = {127, 0.5f, 1.5f, 2.5f, -2.5f, 126.5f};
  uint8_t bytes[34];
  QuantizeRow(WeightType::kQ8_0, x, 32, bytes);
  const int8_t expected[] = {127, 1, 2, 3, -3, 127, 0};
  EXPECT_EQ(std::memcmp(bytes + 2, expected, sizeof(expected)), 0);
}

// The block is unspecified for values that are not finite, and scales of f16 are infinite for the
// largest floats. But it is always the same, and nothing else is written.
TEST(Quant, ExtremeValuesGiveOneBlockAndStayInIt) {
  constexpr size_t kHalf = 256, kGuard = 64;  // values are extreme in the first half of a row only
  constexpr uint8_t kUnwritten = 0xA5;
  std::mt19937 generator(2);
  for (const WeightTypeInfo& info : WeightTypes()) {
    if (info.block_size == 1 || !info.is_written) continue;
    const size_t half_bytes = kHalf / info.block_size * info.block_bytes;
    for (float extreme : {NAN, INFINITY, -INFINITY, 3.4e38f, -3.4e38f, 1e-45f}) {
      for (size_t count : {1, 5, 256}) {
        SCOPED_TRACE(std::string(info.name) + ", " + std::to_string(extreme));
        std::vector<float> x(2 * kHalf);
        for (float& v : x) v = static_cast<float>(generator() % 200) * 0.01f - 1;
        for (size_t i = 0; i < count; ++i) x[generator() % kHalf] = extreme;
        std::vector<uint8_t> bytes(kGuard + 2 * half_bytes + kGuard, kUnwritten);
        uint8_t* const row = bytes.data() + kGuard;
        QuantizeRow(info.type, x.data(), x.size(), row);
        const std::vector<uint8_t> guard(kGuard, kUnwritten);
        ASSERT_EQ(std::memcmp(bytes.data(), guard.data(), kGuard), 0);
        ASSERT_EQ(std::memcmp(row + 2 * half_bytes, guard.data(), kGuard), 0);

        // Other memory, and the second half without the first.
        std::vector<uint8_t> again(2 * half_bytes), second(half_bytes);
        QuantizeRow(info.type, x.data(), x.size(), again.data());
        ASSERT_EQ(std::memcmp(row, again.data(), again.size()), 0);
        QuantizeRow(info.type, &x[kHalf], kHalf, second.data());
        ASSERT_EQ(std::memcmp(row + half_bytes, second.data(), half_bytes), 0);

        std::vector<float> values(x.size());
        DequantizeRow({row, info.type, 1, x.size()}, 0, values.data());
        for (size_t i = extreme == 1e-45f ? 0 : kHalf; i < values.size(); ++i) {
          ASSERT_TRUE(std::isfinite(values[i])) << i;
        }
      }
    }
  }
}

TEST(Quant, QuantsAreTheSameWithoutScales) {
  for (WeightType type : QuantizedTypes()) {
    const WeightTypeInfo& info = GetWeightTypeInfo(type);
    const size_t blocks = 3, cols = blocks * info.block_size;
    const std::vector<uint8_t> bytes = QuantBytes(blocks * info.block_bytes);
    std::vector<int8_t> quants(cols), alone(cols);
    std::vector<float> scales(cols), offsets(cols);
    UnpackRow(type, bytes.data(), cols, quants.data(), scales.data(), offsets.data());
    UnpackRow(type, bytes.data(), cols, alone.data(), nullptr, nullptr);
    EXPECT_EQ(alone, quants) << info.name;
  }
}

TEST(Quant, ErrorsShrinkWithTheBits) {
  // Relative squared errors of normal values; a wrong bit order or scale shows at once.
  const std::pair<WeightType, double> bounds[] = {
      {WeightType::kQ8_0, 5e-5},   {WeightType::kQ6_K, 5e-4},  {WeightType::kQ5_K, 2e-3},
      {WeightType::kQ5_1, 2e-3},   {WeightType::kQ5_0, 3e-3},  {WeightType::kQ4_K, 7e-3},
      {WeightType::kQ4_1, 9e-3},   {WeightType::kQ4_0, 9e-3},  {WeightType::kIQ4_NL, 7e-3},
      {WeightType::kIQ4_XS, 7e-3}, {WeightType::kMXFP4, 3e-2}, {WeightType::kQ3_K, 3e-2},
      {WeightType::kQ2_K, 1e-1}};
  const Array x = RandomArray(1, 8192, 5);
  const std::vector<double> expected(x.data(), x.data() + x.size());
  for (const auto& [type, bound] : bounds) {
    const WeightTypeInfo& info = GetWeightTypeInfo(type);
    std::vector<uint8_t> bytes(x.size() / info.block_size * info.block_bytes);
    QuantizeRow(type, x.data(), x.size(), bytes.data());
    const Array y(1, x.size());
    DequantizeRow({bytes.data(), type, 1, x.size()}, 0, y.data());
    const double nmse = Nmse(y, expected);
    std::printf("%s %.2g\n", std::string(info.name).c_str(), nmse);
    EXPECT_LE(nmse, bound) << info.name;
    EXPECT_GE(nmse, bound / 10) << info.name;
  }
}

TEST(Quant, HalvesRoundToNearestEven) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = FloatFromF16(static_cast<uint16_t>(bits));
    const double expected = HalfValue(static_cast<uint16_t>(bits));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value));
      ASSERT_EQ(F16FromFloat(value) & 0x7FFF, 0x7E00);
      continue;
    }
    ASSERT_EQ(value, expected);
    ASSERT_EQ(F16FromFloat(value), bits);
    // Halfway to the next larger in magnitude goes to the even one, and just beside it to the
    // nearest.
    if ((bits & 0x7FFF) >= 0x7BFF) continue;
    const float next = FloatFromF16(static_cast<uint16_t>(bits + 1));
    const float middle = static_cast<float>((double{value} + next) / 2);
    ASSERT_EQ(F16FromFloat(middle), bits + (bits & 1));
    ASSERT_EQ(F16FromFloat(std::nextafter(middle, value)), bits);
    ASSERT_EQ(F16FromFloat(std::nextafter(middle, next)), bits + 1);
  }
  EXPECT_EQ(F16FromFloat(65519), 0x7BFF);
  EXPECT_EQ(F16FromFloat(65520), 0x7C00);
  EXPECT_EQ(F16FromFloat(-1e30f), 0xFC00);
}

}  // namespace
}  // namespace inlay
