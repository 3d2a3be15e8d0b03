// The products by Intel AMX, whose instructions are emulated: what else they consist of runs here
// on any CPU with the target that they are compiled for.
#define INLAY_AMX
#define HWY_WANT_AVX3_DL
#include "ops/cpu/extension.h"
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS INLAY_DISABLED_TARGETS(0)

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "ops/matmul/matmul_amx_bf16.h"
#include "ops/matmul/operand.h"
#include "tests/ops/emulated_tiles.h"
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

// Adds a product of these operands, whose shapes are those below, twice to random sums.
template <class Tiles, class Add>
Bytes SumsOf(const Bytes& a, const Bytes& b, size_t m, size_t k, size_t n, size_t stride,
             const Add& add) {
  Bytes sums = RandomBytes(16 * 64, 3);
  AmxShapes shapes;
  shapes.Set(0, m, 4 * n);
  shapes.Set(3, m, 4 * k);
  shapes.Set(7, k, 4 * n);
  Tiles::Configure(shapes);
  Tiles::template Load<0>(sums.data(), 64);
  Tiles::template Load<3>(a.data(), stride);
  Tiles::template Load<7>(b.data(), stride);
  add();
  add();
  Tiles::template Store<0>(sums.data(), 64);
  Tiles::Release();
  return sums;
}

// Adds the products of a [m][4 k] and b [k][4 n], whose rows are `stride` bytes apart, twice to n
// random sums in each of m rows of 64 bytes. What is around the sums must stay.
template <class Tiles>
Bytes SumsOfProducts(size_t m, size_t k, size_t n, size_t stride, bool is_unsigned) {
  return SumsOf<Tiles>(RandomBytes(16 * stride, 1), RandomBytes(16 * stride, 2), m, k, n, stride,
                       [&] {
                         if (is_unsigned) return Tiles::template AddProductsOfUnsigned<0, 3, 7>();
                         Tiles::template AddProducts<0, 3, 7>();
                       });
}

// The same from the meaning of the product alone, whose b is of type B.
template <class B>
Bytes ExpectedSums(size_t m, size_t k, size_t n, size_t stride) {
  const Bytes a = RandomBytes(16 * stride, 1), b = RandomBytes(16 * stride, 2);
  Bytes sums = RandomBytes(16 * 64, 3);
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      int64_t sum = 0;
      for (size_t c = 0; c < 4 * k; ++c) {
        const auto of_a = static_cast<int8_t>(a[i * stride + c]);
        const auto of_b = static_cast<B>(b[c / 4 * stride + 4 * j + c % 4]);
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
    EXPECT_EQ(SumsOfProducts<EmulatedTiles>(m, k, n, stride, /*is_unsigned=*/false),
              ExpectedSums<int8_t>(m, k, n, stride))
        << m << ' ' << k << ' ' << n;
    EXPECT_EQ(SumsOfProducts<EmulatedTiles>(m, k, n, stride, /*is_unsigned=*/true),
              ExpectedSums<uint8_t>(m, k, n, stride))
        << m << ' ' << k << ' ' << n;
  }
}

// Bfloat16 whose products are around 1 or around the least normal number, as some of their sums.
Bytes RandomBf16(size_t bytes, uint32_t seed, uint32_t least_exponent) {
  std::mt19937 generator(seed);
  Bytes values(bytes);
  for (size_t i = 0; i < bytes; i += 2) {
    const uint32_t bits = generator();
    const auto value =
        static_cast<uint16_t>((bits & 0x807F) | (least_exponent + bits / 65536 % 20) << 7);
    std::memcpy(&values[i], &value, 2);
  }
  return values;
}

template <class Tiles>
Bytes SumsOfBf16(size_t m, size_t k, size_t n, size_t stride, uint32_t least_exponent) {
  return SumsOf<Tiles>(RandomBf16(16 * stride, 4, least_exponent),
                       RandomBf16(16 * stride, 5, least_exponent), m, k, n, stride,
                       [] { Tiles::template AddProductsOfBf16<0, 3, 7>(); });
}

// The sum of the products of two rows, as one element of a register, added to `sum`.
float EmulatedBf16Sum(float sum, const std::vector<float>& a, const std::vector<float>& b) {
  const auto halves = [](const std::vector<float>& floats) {
    std::vector<uint16_t> values;
    for (float x : floats)
      values.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16));
    return values;
  };
  AmxShapes shapes;
  shapes.Set(0, 1, 4);
  shapes.Set(1, 1, 2 * a.size());
  shapes.Set(2, a.size() / 2, 4);
  EmulatedTiles::Configure(shapes);
  EmulatedTiles::Load<0>(&sum, 64);
  EmulatedTiles::Load<1>(halves(a).data(), 64);
  EmulatedTiles::Load<2>(halves(b).data(), 4);
  EmulatedTiles::AddProductsOfBf16<0, 1, 2>();
  EmulatedTiles::Store<0>(&sum, 64);
  EmulatedTiles::Release();
  return sum;
}

TEST(EmulatedTiles, AddsProductsOfBf16InTheirOrder) {
  EXPECT_EQ(EmulatedBf16Sum(1, {2, 3, 5, 7}, {11, 13, 17, 19}), 1 + 22 + 39 + 85 + 133);
  const float large = 0x1p24f;  // to which 1 cannot be added
  EXPECT_EQ(EmulatedBf16Sum(large, {1, 0, 1, 0}, {1, 1, 1, 1}), large + 2) << "even columns first";
  EXPECT_EQ(EmulatedBf16Sum(large, {0, 1, 0, 1}, {1, 1, 1, 1}), large + 2) << "odd columns first";
  EXPECT_EQ(EmulatedBf16Sum(large, {1, 1}, {1, 1}), large + 2) << "then both";
  EXPECT_EQ(EmulatedBf16Sum(0, {large, 1, 1, 0, -large, 0}, {1, 1, 1, 1, 1, 1}), 1)
      << "each in the order of the columns";
  EXPECT_EQ(EmulatedBf16Sum(0, {0x1p-70f, 0}, {0x1p-70f, 0}), 0) << "a subnormal product";
  EXPECT_EQ(EmulatedBf16Sum(0, {0x1p-130f, 0}, {0x1p100f, 0}), 0) << "a subnormal operand";
  EXPECT_EQ(EmulatedBf16Sum(0x1p-130f, {1, 0}, {0x1p-126f, 0}), 0x1p-126f) << "a subnormal sum";
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
// Which of several NaNs a sum is, is not what is compared.
bool SameOrNan(const Bytes& a, const Bytes& b) {
  for (size_t i = 0; i < a.size(); i += 4) {
    float x, y;
    std::memcpy(&x, &a[i], 4);
    std::memcpy(&y, &b[i], 4);
    if (std::memcmp(&x, &y, 4) != 0 && !(std::isnan(x) && std::isnan(y))) return false;
  }
  return true;
}

TEST(AmxTiles, DoWhatIsEmulated) {
  if (!ForceTarget("AVX3_DL_AMX")) GTEST_SKIP() << "this CPU lacks AMX";
  ForceTarget("");
  for (const auto& [m, k, n, stride] : kShapes) {
    for (bool is_unsigned : {false, true}) {
      EXPECT_EQ(SumsOfProducts<AmxTiles>(m, k, n, stride, is_unsigned),
                SumsOfProducts<EmulatedTiles>(m, k, n, stride, is_unsigned))
          << m << ' ' << k << ' ' << n << (is_unsigned ? ", unsigned" : "");
    }
    for (uint32_t exponent : {0, 50, 57, 117}) {
      EXPECT_TRUE(SameOrNan(SumsOfBf16<AmxTiles>(m, k, n, stride, exponent),
                            SumsOfBf16<EmulatedTiles>(m, k, n, stride, exponent)))
          << m << ' ' << k << ' ' << n << ", exponents from " << exponent;
    }
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
    if (task.w->format() == PackedFormat::kBF16) {
      AmxBf16Kernel<EmulatedTiles>::Run(task, x.bf16(), begin, end);
    } else {
      HWY_DYNAMIC_DISPATCH(MultiplyEmulated)(task, x.quantized(), begin, end);
    }
    EXPECT_FALSE(EmulatedTiles::configured()) << "every later change of threads takes longer";
  }

  // Expects the same bits of a product with random activations.
  void CompareWithAvx3Dl(const PackedMatrix& w, size_t tokens) {
    const Array x = RandomArray(tokens, w.cols(), 22);
    const Array with(tokens, w.rows()), without(tokens, w.rows());
    const OwnedOperand input(x, OperandForms::For({&w}), team_);
    Multiply({&w, with}, *input, 0, w.tiles());
    MatMul(w, *input, without, team_);
    EXPECT_TRUE(SameBits(with, without))
        << w.rows() << " rows, " << w.cols() << " columns, " << tokens << " tokens";
  }

  Team team_{1};
};

std::vector<WeightType> AmxTypes() {
  std::vector<WeightType> types = QuantizedTypes();
  types.push_back(WeightType::kBF16);
  return types;
}

std::vector<size_t> Columns(WeightType type) {
  if (type == WeightType::kBF16) return {1, 2, 31, 32, 33, 34, 66, 96, 115};
  if (GetWeightTypeInfo(type).block_size == 256) return {256, 512, 768};
  return {32, 96, 256, 608};
}

TEST_F(AmxMatMulTest, HasTheBitsOfAvx3Dl) {
  for (WeightType type : AmxTypes()) {
    SCOPED_TRACE(GetWeightTypeInfo(type).name);
    for (size_t cols : Columns(type)) {
      for (size_t rows : {1, 16, 53, 90}) {
        const Weights w(type, rows, cols, 21);
        const PackedMatrix packed = PackedMatrix::Pack(w.matrix, team_);
        // Around whole groups of tokens, and the least and most that are left over.
        for (size_t tokens :
             {1, 10, 11, 14, 16, 17, 31, 33, 47, 48, 49, 95, 96, 97, 102, 103, 112}) {
          CompareWithAvx3Dl(packed, tokens);
        }
      }
    }
  }
}

// More tiles and tokens than are unpacked or copied at once, and as many columns as are, or more.
TEST_F(AmxMatMulTest, LargeMatricesHaveTheBitsOfAvx3Dl) {
  for (WeightType type : AmxTypes()) {
    SCOPED_TRACE(GetWeightTypeInfo(type).name);
    const size_t more = GetWeightTypeInfo(type).block_size == 256 ? 2304 : 2080;
    for (size_t cols : {size_t{1024}, more}) {
      const size_t rows = kAmxTiles * kTileRows + 21;
      const Weights w(type, rows, cols, 51);
      const PackedMatrix packed = PackedMatrix::Pack(w.matrix, team_);
      for (size_t tokens : {16, 100}) CompareWithAvx3Dl(packed, tokens);
    }
  }
}

// Of some of these numbers of tokens not all activations fit the memory for copies; of the others
// they are multiplied in parts, by some of the tiles at a time.
TEST_F(AmxMatMulTest, LongRowsHaveTheBitsOfAvx3Dl) {
  for (WeightType type : {WeightType::kQ8_0, WeightType::kQ4_K, WeightType::kQ6_K}) {
    SCOPED_TRACE(GetWeightTypeInfo(type).name);
    const Weights w(type, 150, 9984, 51);
    const PackedMatrix packed = PackedMatrix::Pack(w.matrix, team_);
    for (size_t tokens : {16, 32, 47, 48, 96}) CompareWithAvx3Dl(packed, tokens);
  }
}

TEST_F(AmxMatMulTest, TakesRowsByTheirNumbers) {
  for (WeightType type : AmxTypes()) {
    const size_t cols = 512, rows = 40, inputs = 11;
    const Weights w(type, rows, cols, 31);
    const PackedMatrix packed = PackedMatrix::Pack(w.matrix, team_);
    const Array x = RandomArray(inputs, cols, 32);
    const OwnedOperand input(x, OperandForms::For({&packed}), team_);
    for (size_t tokens : {5, 16, 51, 101, 112}) {
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
  for (WeightType type : AmxTypes()) {
    const size_t cols = 256, rows = 150;
    const Weights w(type, rows, cols, 41);
    const PackedMatrix packed = PackedMatrix::Pack(w.matrix, team_);
    for (size_t tokens : {30, 113}) {
      const Array x = RandomArray(tokens, cols, 42), expected(tokens, rows);
      const OwnedOperand input(x, OperandForms::For({&packed}), team_);
      MatMul(packed, *input, expected, team_);
      for (const auto& [begin, end] :
           std::vector<std::pair<size_t, size_t>>{{0, 2}, {1, 8}, {4, 4}, {5, 10}}) {
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
}

// AVX3 treats subnormal numbers as AMX does.
TEST_F(AmxMatMulTest, SubnormalBf16) {
  const size_t cols = 96, rows = 37, tokens = 19;
  const Array x = RandomArray(tokens, cols, 62);
  for (uint32_t exponent : {0, 1, 20}) {
    const Bytes values = RandomBf16(2 * rows * cols, 61, exponent);
    const PackedMatrix packed =
        PackedMatrix::Pack(WeightMatrix{values.data(), WeightType::kBF16, rows, cols}, team_);
    const Array with(tokens, rows), without(tokens, rows);
    const OwnedOperand input(x, OperandForms::For({&packed}), team_);
    Multiply({&packed, with}, *input, 0, packed.tiles());
    MatMul(packed, *input, without, team_);
    EXPECT_TRUE(SameBits(with, without)) << "exponents from " << exponent;
  }
}

// By the instructions themselves.
TEST_F(AmxMatMulTest, SiliconHasTheBitsOfAvx3Dl) {
  if (!ForceTarget("AVX3_DL_AMX")) GTEST_SKIP() << "this CPU lacks AMX";
  for (WeightType type : AmxTypes()) {
    for (size_t tokens : {1, 5, 16, 17, 30, 49, 96, 101}) {
      const size_t cols = 2304, rows = kAmxTiles * kTileRows + 21;
      const Weights w(type, rows, cols, 71);
      const PackedMatrix packed = PackedMatrix::Pack(w.matrix, team_);
      const Array x = RandomArray(tokens, cols, 72), with(tokens, rows), without(tokens, rows);
      const OwnedOperand input(x, OperandForms::For({&packed}), team_);
      ForceTarget("AVX3_DL_AMX");
      MatMul(packed, *input, with, team_);
      ForceTarget("AVX3_DL");
      MatMul(packed, *input, without, team_);
      EXPECT_TRUE(SameBits(with, without))
          << GetWeightTypeInfo(type).name << ", " << tokens << " tokens";
    }
  }
}

// The largest sums that there can be, and scales that are not finite.
TEST_F(AmxMatMulTest, Extremes) {
  std::vector<std::pair<float, size_t>> values;  // and the numbers of tokens
  for (float value : {1.0f, -1.0f, 1e-40f, 1e36f, INFINITY}) {
    for (size_t tokens : {16, 112}) values.emplace_back(value, tokens);
  }
  for (WeightType type : AmxTypes()) {
    const size_t cols = GetWeightTypeInfo(type).block_size, rows = 19;
    for (uint8_t byte : {0x00, 0x77, 0x7F, 0x80, 0x81, 0x88, 0xFF}) {
      const Weights w(type, rows, cols, 5, byte);
      const PackedMatrix packed = PackedMatrix::Pack(w.matrix, team_);
      for (const auto& [value, tokens] : values) {
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
