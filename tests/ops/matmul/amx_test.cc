// The products by Intel AMX, whose instructions are emulated: what else they consist of runs here
// on any CPU with the target that they are compiled for.
#define INLAY_AMX
#define HWY_WANT_AVX3_DL
#include "ops/cpu/extension.h"
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS INLAY_DISABLED_TARGETS(0)

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "ops/matmul/operand.h"
#include "tests/ops/matmul/emulated_tiles.h"
#include "tests/ops/op_test.h"
#include "tests/ops/quant/quantized_weights.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/ops/matmul/amx_test.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul/matmul_amx-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {
namespace {

#if INLAY_IS_COMPILED
void MultiplyEmulated(const MatMulTask& task, const QuantizedRows& x, size_t begin, size_t end) {
  MultiplyByAmx<EmulatedTiles>(task, x, begin, end);
}
#else
void MultiplyEmulated(const MatMulTask&, const QuantizedRows&, size_t, size_t) {}
#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace inlay {
namespace {

HWY_EXPORT(MultiplyEmulated);

using Bytes = std::vector<uint8_t>;

Bytes RandomBytes(size_t n, uint32_t seed) {
  std::mt19937 generator(seed);
  Bytes bytes(n);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(generator());
  return bytes;
}

// Adds the products of a [m][4 k] and b [k][4 n], whose rows are `stride` bytes apart, twice to n
// random sums in each of m rows of 64 bytes. What is around the sums must stay.
template <class Tiles>
Bytes SumsOfProducts(size_t m, size_t k, size_t n, size_t stride) {
  const Bytes a = RandomBytes(16 * stride, 1), b = RandomBytes(16 * stride, 2);
  Bytes sums = RandomBytes(16 * 64, 3);
  AmxShapes shapes;
  shapes.Set(0, m, 4 * n);
  shapes.Set(3, m, 4 * k);
  shapes.Set(7, k, 4 * n);
  Tiles::Configure(shapes);
  Tiles::template Load<0>(sums.data(), 64);
  Tiles::template Load<3>(a.data(), stride);
  Tiles::template Load<7>(b.data(), stride);
  Tiles::template AddProducts<0, 3, 7>();
  Tiles::template AddProducts<0, 3, 7>();
  Tiles::template Store<0>(sums.data(), 64);
  Tiles::Release();
  return sums;
}

// The same from the meaning of the product alone.
Bytes ExpectedSums(size_t m, size_t k, size_t n, size_t stride) {
  const Bytes a = RandomBytes(16 * stride, 1), b = RandomBytes(16 * stride, 2);
  Bytes sums = RandomBytes(16 * 64, 3);
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      int64_t sum = 0;
      for (size_t c = 0; c < 4 * k; ++c) {
        const auto of_a = static_cast<int8_t>(a[i * stride + c]);
        const auto of_b = static_cast<int8_t>(b[c / 4 * stride + 4 * j + c % 4]);
        sum += int64_t{of_a} * of_b;
      }
      uint32_t word;
      std::memcpy(&word, &sums[64 * i + 4 * j], 4);
      word = static_cast<uint32_t>(word + 2 * sum);
      std::memcpy(&sums[64 * i + 4 * j], &word, 4);
    }
  }
  return sums;
}

struct Shape {
  size_t m, k, n, stride;
};
constexpr Shape kShapes[] = {{16, 8, 16, 64}, {16, 4, 16, 64}, {16, 16, 16, 64},
                             {1, 1, 1, 64},   {3, 5, 7, 80},   {15, 16, 2, 192}};

TEST(EmulatedTiles, AddsProducts) {
  for (const auto& [m, k, n, stride] : kShapes) {
    EXPECT_EQ(SumsOfProducts<EmulatedTiles>(m, k, n, stride), ExpectedSums(m, k, n, stride))
        << m << ' ' << k << ' ' << n;
  }
}

TEST(EmulatedTiles, OperandsOfExtremes) {
  const int8_t least[64] = {-128, -128, -128, -128}, most[64] = {127, 127, 127, 127};
  AmxShapes shapes;
  for (size_t r : {0, 1, 2}) shapes.Set(r, 1, 4);
  EmulatedTiles::Configure(shapes);
  EmulatedTiles::Load<1>(least, 64);
  int32_t sum = INT32_MAX;
  EmulatedTiles::Load<0>(&sum, 64);
  EmulatedTiles::Load<2>(least, 64);
  EmulatedTiles::AddProducts<0, 1, 2>();
  EmulatedTiles::Store<0>(&sum, 64);
  EXPECT_EQ(sum, INT32_MIN + 4 * 128 * 128 - 1);
  EmulatedTiles::Load<2>(most, 64);
  EmulatedTiles::AddProducts<0, 1, 2>();
  EmulatedTiles::Store<0>(&sum, 64);
  EXPECT_EQ(sum, INT32_MIN + 4 * 128 * 128 - 1 - 4 * 128 * 127);
  EmulatedTiles::Zero<0>();
  EmulatedTiles::Store<0>(&sum, 64);
  EXPECT_EQ(sum, 0);
  EmulatedTiles::Release();
}

TEST(EmulatedTiles, Faults) {
  using Fault = EmulatedTiles::Fault;
  const auto configure = [](size_t r, size_t rows, size_t row_bytes) {
    AmxShapes shapes;
    for (size_t i : {0, 1, 2}) shapes.Set(i, 16, 64);
    shapes.Set(r, rows, row_bytes);
    EmulatedTiles::Configure(shapes);
  };
  const auto multiply = [] { EmulatedTiles::AddProducts<0, 1, 2>(); };
  EmulatedTiles::Release();
  EXPECT_THROW(EmulatedTiles::Zero<0>(), Fault) << "not configured";
  EXPECT_THROW(configure(3, 17, 64), Fault);
  EXPECT_THROW(configure(3, 16, 68), Fault);
  EXPECT_THROW(configure(3, 16, 0), Fault);
  EXPECT_THROW(configure(8, 16, 64), Fault);
  configure(3, 16, 64);
  EXPECT_NO_THROW(multiply());
  EXPECT_THROW((EmulatedTiles::AddProducts<0, 1, 1>()), Fault);
  EXPECT_THROW((EmulatedTiles::AddProducts<0, 0, 1>()), Fault);
  EXPECT_THROW(EmulatedTiles::Zero<4>(), Fault) << "without rows";
  configure(1, 16, 32);
  EXPECT_THROW(multiply(), Fault) << "other quads than b";
  configure(1, 8, 64);
  EXPECT_THROW(multiply(), Fault) << "other rows than the sums";
  configure(0, 16, 32);
  EXPECT_THROW(multiply(), Fault) << "other columns than b";
  EmulatedTiles::Release();
}

#ifdef __x86_64__
TEST(AmxTiles, DoWhatIsEmulated) {
  if (!ForceTarget("AVX3_DL_AMX")) GTEST_SKIP() << "this CPU lacks AMX";
  ForceTarget("");
  for (const auto& [m, k, n, stride] : kShapes) {
    EXPECT_EQ(SumsOfProducts<AmxTiles>(m, k, n, stride),
              SumsOfProducts<EmulatedTiles>(m, k, n, stride))
        << m << ' ' << k << ' ' << n;
  }
}
#endif

class AmxMatMulTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!ForceTarget("AVX3_DL")) GTEST_SKIP() << "this CPU, or this build, lacks AVX3_DL";
  }
  void TearDown() override { ForceTarget(""); }

  // A product by the emulated AMX.
  void Multiply(const MatMulTask& task, const Operand& x, size_t begin, size_t end) {
    HWY_DYNAMIC_DISPATCH(MultiplyEmulated)(task, x.quantized(), begin, end);
    EXPECT_FALSE(EmulatedTiles::configured()) << "every later change of threads takes longer";
  }

  Team team_{1};
};

std::vector<size_t> Columns(WeightType type) {
  if (GetWeightTypeInfo(type).block_size == 256) return {256, 512, 768};
  return {32, 96, 256, 608};
}

TEST_F(AmxMatMulTest, HasTheBitsOfAvx3Dl) {
  for (WeightType type : QuantizedTypes()) {
    for (size_t cols : Columns(type)) {
      for (size_t rows : {1, 16, 53, 90}) {
        const Weights w(type, rows, cols, 21);
        const PackedMatrix packed = PackedMatrix::Pack(w.matrix, team_);
        for (size_t tokens = 1; tokens <= 40; ++tokens) {
          const Array x = RandomArray(tokens, cols, 22), with(tokens, rows), without(tokens, rows);
          const OwnedOperand input(x, OperandForms::For({&packed}), team_);
          Multiply({&packed, with}, *input, 0, packed.tiles());
          MatMul(packed, *input, without, team_);
          ASSERT_TRUE(SameBits(with, without))
              << GetWeightTypeInfo(type).name << ", " << rows << " rows, " << cols << " columns, "
              << tokens << " tokens";
        }
      }
    }
  }
}

// More tiles, tokens and columns than are unpacked or copied at once.
TEST_F(AmxMatMulTest, LargeMatricesHaveTheBitsOfAvx3Dl) {
  for (WeightType type : QuantizedTypes()) {
    const size_t cols = GetWeightTypeInfo(type).block_size == 256 ? 2304 : 2080;
    const size_t rows = kAmxTiles * kTileRows + 21, tokens = 2 * kAmxTokens + 9;
    const Weights w(type, rows, cols, 51);
    const PackedMatrix packed = PackedMatrix::Pack(w.matrix, team_);
    const Array x = RandomArray(tokens, cols, 52), with(tokens, rows), without(tokens, rows);
    const OwnedOperand input(x, OperandForms::For({&packed}), team_);
    Multiply({&packed, with}, *input, 0, packed.tiles());
    MatMul(packed, *input, without, team_);
    EXPECT_TRUE(SameBits(with, without)) << GetWeightTypeInfo(type).name;
  }
}

TEST_F(AmxMatMulTest, TakesRowsByTheirNumbers) {
  for (WeightType type : QuantizedTypes()) {
    const size_t cols = 512, rows = 40, inputs = 11;
    const Weights w(type, rows, cols, 31);
    const PackedMatrix packed = PackedMatrix::Pack(w.matrix, team_);
    const Array x = RandomArray(inputs, cols, 32);
    const OwnedOperand input(x, OperandForms::For({&packed}), team_);
    for (size_t tokens : {5, 16, 20, 27, 35}) {
      std::mt19937 generator(33);
      std::vector<int32_t> x_rows(tokens);
      for (int32_t& row : x_rows) row = static_cast<int32_t>(generator() % inputs);
      const Array with(tokens, rows), without(tokens, rows);
      Multiply({&packed, with, x_rows.data()}, *input, 0, packed.tiles());
      const MatMulTask task = {&packed, without, x_rows.data()};
      MatMul({&task, 1}, *input, team_);
      EXPECT_TRUE(SameBits(with, without))
          << GetWeightTypeInfo(type).name << ", " << tokens << " tokens";
    }
  }
}

TEST_F(AmxMatMulTest, RangesOfTilesAreComputedAlone) {
  for (WeightType type : QuantizedTypes()) {
    const size_t cols = 256, rows = 150, tokens = 23;
    const Weights w(type, rows, cols, 41);
    const PackedMatrix packed = PackedMatrix::Pack(w.matrix, team_);
    const Array x = RandomArray(tokens, cols, 42), expected(tokens, rows);
    const OwnedOperand input(x, OperandForms::For({&packed}), team_);
    MatMul(packed, *input, expected, team_);
    for (const auto& [begin, end] :
         std::vector<std::pair<size_t, size_t>>{{0, 2}, {1, 8}, {5, 10}}) {
      const Array y(tokens, rows);
      std::fill_n(y.data(), y.size(), -7.0f);
      Multiply({&packed, y}, *input, begin, end);
      for (size_t t = 0; t < tokens; ++t) {
        for (size_t r = 0; r < rows; ++r) {
          const bool inside = begin * kTileRows <= r && r < end * kTileRows;
          ASSERT_EQ(y.At(t, r), inside ? expected.At(t, r) : -7.0f)
              << GetWeightTypeInfo(type).name << ", row " << r;
        }
      }
    }
  }
}

// The largest sums that there can be, and scales that are not finite.
TEST_F(AmxMatMulTest, Extremes) {
  for (WeightType type : QuantizedTypes()) {
    const size_t cols = GetWeightTypeInfo(type).block_size, rows = 19, tokens = 16;
    for (uint8_t byte : {0x00, 0x77, 0x7F, 0x80, 0x81, 0x88, 0xFF}) {
      const Weights w(type, rows, cols, 5, byte);
      const PackedMatrix packed = PackedMatrix::Pack(w.matrix, team_);
      for (float value : {1.0f, -1.0f, 1e-40f, 1e36f, INFINITY}) {
        const Array x(tokens, cols), with(tokens, rows), without(tokens, rows);
        std::fill_n(x.data(), x.size(), value);
        const OwnedOperand input(x, OperandForms::For({&packed}), team_);
        Multiply({&packed, with}, *input, 0, packed.tiles());
        MatMul(packed, *input, without, team_);
        for (size_t i = 0; i < with.size(); ++i) {
          const float a = with.data()[i], b = without.data()[i];
          ASSERT_TRUE(SameBits(&a, &b, 1) || (std::isnan(a) && std::isnan(b)))
              << GetWeightTypeInfo(type).name << ", bytes " << int{byte} << ": " << a << ", " << b;
        }
      }
    }
  }
}

}  // namespace
}  // namespace inlay
#endif  // HWY_ONCE
