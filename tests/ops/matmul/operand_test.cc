// Operands whose columns are made apart: at other ranks, and by others' quants and scales.
#include "ops/matmul/operand.h"

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ops/cpu/cpu_target.h"

namespace inlay {
namespace {

constexpr size_t kOperandRows = 5;
constexpr size_t kOperandCols = 160;

std::vector<float> SomeFloats() {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> x(kOperandRows * kOperandCols);
  for (float& value : x) value = normal(random);
  for (size_t i = 64; i < 96; ++i) x[i] = 0;  // a block of zeros
  for (size_t i = 96; i < 128; ++i) x[i] *= 1e-38f;
  return x;
}

class OperandTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_TRUE(ForceTarget(GetParam())); }
  void TearDown() override { ForceTarget(""); }
};

INSTANTIATE_TEST_SUITE_P(Targets, OperandTest, ::testing::ValuesIn(RunnableTargets()),
                         [](const auto& info) { return info.param; });

TEST_P(OperandTest, QuantsAndScaleGiveAllOfABlock) {
  const std::vector<float> x = SomeFloats();
  Team team(1);
  const OwnedOperand operand({x.data(), kOperandRows, kOperandCols}, {.quantized = true}, team);
  for (size_t r = 0; r < kOperandRows; ++r) {
    for (size_t b = 0; b < kOperandCols / kQuantBlock; ++b) {
      const QuantizedBlock& rounded = (*operand).quantized().Row(r)[b];
      QuantizedBlock sent = {};
      std::memcpy(&sent, &rounded, offsetof(QuantizedBlock, scale) + sizeof(float));
      SetSums(sent);
      EXPECT_EQ(std::memcmp(&sent, &rounded, offsetof(QuantizedBlock, unused)), 0) << r << " " << b;
    }
  }
}

// What memory holds before parts of an operand are written to it.
constexpr unsigned char kUnwritten = 0xAA;

bool IsUnwritten(const QuantizedBlock& block) {
  const std::vector<unsigned char> unwritten(sizeof(block), kUnwritten);
  return std::memcmp(&block, unwritten.data(), sizeof(block)) == 0;
}

TEST_P(OperandTest, PartsOfColumnsAreThoseOfTheWhole) {
  const std::vector<float> x = SomeFloats();
  const ConstFloatRows rows(x.data(), kOperandRows, kOperandCols);
  Team team(2);
  const OperandForms forms{.quantized = true, .bf16 = true};
  const OwnedOperand whole(rows, forms, team);
  for (const size_t first : {size_t{0}, size_t{32}, size_t{96}}) {
    const size_t count = first == 96 ? kOperandCols - first : 64;
    alignas(64) float memory[Operand::MemoryFloats(kOperandRows, kOperandCols)];
    std::memset(memory, kUnwritten, sizeof(memory));
    const Operand part =
        Operand::MakeColumns(rows, first, count, 1, forms, memory, team, [](size_t, size_t) {});
    const auto is_part = [&](size_t col) { return first <= col && col < first + count; };
    for (size_t r = 0; r < kOperandRows; ++r) {
      for (size_t c = 0; c < kOperandCols; ++c) {
        const Bf16 unwritten = kUnwritten << 8 | kUnwritten;
        EXPECT_EQ(part.bf16().Row(r)[c], is_part(c) ? (*whole).bf16().Row(r)[c] : unwritten)
            << first << ": " << r << " " << c;
      }
      for (size_t b = 0; b < kOperandCols / kQuantBlock; ++b) {
        const QuantizedBlock& block = part.quantized().Row(r)[b];
        if (is_part(b * kQuantBlock)) {
          EXPECT_EQ(std::memcmp(&block, (*whole).quantized().Row(r) + b,
                                offsetof(QuantizedBlock, unused)),
                    0);
        } else {
          EXPECT_TRUE(IsUnwritten(block)) << first << ": " << r << " " << b;
        }
      }
    }
  }
}

TEST_P(OperandTest, PartsOfSpansOfColumns) {
  std::vector<float> x = SomeFloats();
  x.resize(kOperandRows * 128);
  const ConstFloatRows rows(x.data(), kOperandRows, 128);
  Team team(2);
  const OperandForms forms{.quantized = true};
  const OwnedOperand whole(rows, forms, team);
  alignas(64) float memory[Operand::MemoryFloats(kOperandRows, 128)];
  std::memset(memory, kUnwritten, sizeof(memory));
  const Operand part =
      Operand::MakeColumns(rows, 32, 32, 2, forms, memory, team, [](size_t, size_t) {});
  for (size_t r = 0; r < kOperandRows; ++r) {
    for (const size_t block : {1, 3}) {
      EXPECT_EQ(std::memcmp(part.quantized().Row(r) + block, (*whole).quantized().Row(r) + block,
                            offsetof(QuantizedBlock, unused)),
                0);
    }
    for (const size_t block : {0, 2}) EXPECT_TRUE(IsUnwritten(part.quantized().Row(r)[block]));
  }
}

}  // namespace
}  // namespace inlay
