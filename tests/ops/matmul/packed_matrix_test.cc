// The bytes of packed matrices, which files keep.
#include "ops/matmul/packed_matrix.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/xxh64.h"
#include "gtest/gtest.h"

namespace inlay {
namespace {

constexpr size_t kPackedRows = 21;
constexpr size_t kPackedCols = 512;

// A matrix of any bytes is a matrix.
std::vector<uint8_t> Bytes(WeightType type) {
  const WeightTypeInfo& info = GetWeightTypeInfo(type);
  std::vector<uint8_t> bytes(kPackedRows * kPackedCols / info.block_size * info.block_bytes);
  uint32_t state = 1;
  for (uint8_t& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<uint8_t>(state >> 24);
    if (byte >= 0x7C) byte &= 0x3F;  // no halves that are not numbers
  }
  return bytes;
}

// Packed files are read for as long as these bytes are the same: when this test fails because a
// format was changed on purpose, raise kPackedLayoutVersion and write down the new hashes.
TEST(PackedMatrixTest, LayoutIsOfItsVersion) {
  EXPECT_EQ(kPackedLayoutVersion, 4u);
  const std::pair<WeightType, uint64_t> expected[] = {
      {WeightType::kF32, 0xaae310008e2f8169},     {WeightType::kF16, 0x18a017389eab92bb},
      {WeightType::kBF16, 0x5b42da6352b9376f},    {WeightType::kQ8_0, 0xdb47936d7edcd53},
      {WeightType::kQ4_0, 0xab116bff7b78b2c6},    {WeightType::kQ4_1, 0xf131b70d6622a047},
      {WeightType::kQ5_0, 0xed9e3bed80669c79},    {WeightType::kQ5_1, 0xee54f595716c85d2},
      {WeightType::kQ2_K, 0x94823d88c089b832},    {WeightType::kQ3_K, 0x6c5a82aba1a41979},
      {WeightType::kQ4_K, 0x9b12aeac6ebc75ab},    {WeightType::kQ5_K, 0xac03394cd08c5e41},
      {WeightType::kQ6_K, 0xc2a6290548182b0c},    {WeightType::kIQ4_NL, 0xab116bff7b78b2c6},
      {WeightType::kIQ4_XS, 0x129c8f9da7b5a750},  {WeightType::kMXFP4, 0x1f964de75c0103d4},
      {WeightType::kIQ3_XXS, 0x253e707b1d774640}, {WeightType::kIQ3_S, 0x8a7872f6d6bc0d92},
      {WeightType::kIQ2_XXS, 0xb8c65bda1d94eee0}, {WeightType::kIQ2_XS, 0x6de5b14cf70dc8cc},
      {WeightType::kIQ2_S, 0xee3cda3b6ce483f7},
  };
  Team team(1);
  for (const auto& [type, hash] : expected) {
    const std::vector<uint8_t> bytes = Bytes(type);
    const PackedMatrix packed =
        PackedMatrix::Pack({bytes.data(), type, kPackedRows, kPackedCols}, team);
    EXPECT_EQ(Xxh64Of(packed.tile(0), packed.bytes()), hash)
        << GetWeightTypeInfo(type).name << std::hex << " 0x"
        << Xxh64Of(packed.tile(0), packed.bytes());
  }
}

TEST(PackedMatrixTest, ViewsDoNotOwn) {
  const std::vector<uint8_t> bytes = Bytes(WeightType::kQ8_0);
  Team team(1);
  const PackedMatrix packed =
      PackedMatrix::Pack({bytes.data(), WeightType::kQ8_0, kPackedRows, kPackedCols}, team);
  PackedMatrix view =
      PackedMatrix::View(packed.tile(0), WeightType::kQ8_0, kPackedRows, kPackedCols);
  EXPECT_EQ(view.tile(1), packed.tile(1));
  EXPECT_EQ(view.format(), packed.format());
  EXPECT_EQ(view.bytes(), packed.bytes());
  PackedMatrix moved = std::move(view);
  EXPECT_EQ(moved.tile(0), packed.tile(0));
  moved = PackedMatrix::Pack({bytes.data(), WeightType::kQ8_0, kPackedRows, kPackedCols}, team);
  EXPECT_NE(moved.tile(0), packed.tile(0));
}

}  // namespace
}  // namespace inlay
