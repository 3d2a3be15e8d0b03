#include "ops/quant/dequantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>

#include "tests/ops/matmul/pack_and_multiply.h"
#include "tests/ops/op_test.h"
#include "tests/ops/sharing_team.h"

namespace inlay {
namespace {

using MatMulTest = OnEveryTarget;
INLAY_ON_EVERY_TARGET(MatMulTest);

constexpr WeightType kWeightTypes[] = {WeightType::kF32, WeightType::kF16, WeightType::kBF16};

// Random weights of a type, with their values.
struct StoredWeights {
  StoredWeights(WeightType type, size_t rows, size_t cols, uint32_t seed) : values(rows * cols) {
    std::mt19937 generator(seed);
    const size_t bytes = rows * cols * GetWeightTypeInfo(type).block_bytes;
    data.reset(new uint8_t[bytes]);
    for (size_t i = 0; i < values.size(); ++i) {
      // Sign and fraction at random, magnitudes from 2^-4 to 2.
      const uint32_t random = generator();
      if (type == WeightType::kF32) {
        const uint32_t bits = (random & 0x807FFFFFu) | ((123 + (random >> 24) % 5) << 23);
        float value;
        std::memcpy(&value, &bits, 4);
        std::memcpy(&data[4 * i], &value, 4);
        values[i] = value;
      } else {
        const bool half = type == WeightType::kF16;
        const uint32_t exponent = (half ? 11 : 123) + (random >> 24) % 5;
        const uint16_t bits =
            half ? (random & 0x83FF) | exponent << 10 : (random & 0x807F) | exponent << 7;
        std::memcpy(&data[2 * i], &bits, 2);
        values[i] = half ? HalfValue(bits) : Bf16Value(bits);
      }
    }
    matrix = {data.get(), type, rows, cols};
  }

  std::unique_ptr<uint8_t[]> data;
  WeightMatrix matrix;
  std::vector<double> values;
};

// x as the product with weights of this type sees it.
double Rounded(WeightType type, float x) {
  if (type != WeightType::kBF16) return x;
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return Bf16Value(static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16) % 2) >> 16));
}

// |y - reference|^2 over the sum of all squared terms w * x, which is what |reference|^2 is
// expected to be for random signs; the reference itself may cancel when there are few outputs.
double MatMulNmse(const StoredWeights& w, ConstFloatRows x, ConstFloatRows y) {
  double error = 0, norm = 0;
  for (size_t t = 0; t < x.rows; ++t) {
    for (size_t r = 0; r < w.matrix.rows; ++r) {
      double sum = 0;
      for (size_t c = 0; c < x.cols; ++c) {
        const double term = w.values[r * x.cols + c] * Rounded(w.matrix.type, x.Row(t)[c]);
        sum += term;
        norm += term * term;
      }
      error += (y.Row(t)[r] - sum) * (y.Row(t)[r] - sum);
    }
  }
  return error / norm;
}

TEST_P(MatMulTest, MatchesReferenceForAllRemainders) {
  SharingTeam team(2);
  double worst = 0;
  for (WeightType type : kWeightTypes) {
    for (size_t cols : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 130, 1027}) {
      for (size_t rows : {1, 2, 3, 4, 5, 7, 17, 33}) {
        for (size_t tokens : {1, 2, 3, 4, 5, 7, 9, 18}) {
          const StoredWeights w(type, rows, cols, cols * 100 + rows);
          const Array x = RandomArray(tokens, cols, tokens, 1, (cols + rows) % 5);
          const Array y(tokens, rows, tokens % 3);
          PackAndMultiply(w.matrix, x, y, team);
          const double nmse = MatMulNmse(w, x, y);
          ASSERT_LE(nmse, 4e-12) << cols << " columns, " << rows << " rows, " << tokens
                                 << " tokens, " << GetWeightTypeInfo(type).name;
          worst = std::max(worst, nmse);
        }
      }
    }
  }
  std::printf("worst NMSE %.2g\n", worst);
}

TEST_P(MatMulTest, BitsDoNotDependOnTokensOrThreads) {
  for (WeightType type : kWeightTypes) {
    // An odd number of columns, and of pairs of columns.
    const size_t cols = 529, rows = 83, tokens = 21;
    const StoredWeights w(type, rows, cols, 7);
    const Array x = RandomArray(tokens, cols, 8);
    const Array all(tokens, rows);
    Team one(1);
    PackAndMultiply(w.matrix, x, all, one);
    for (size_t threads : {1, 2, 3}) {
      SharingTeam team(threads);
      for (size_t step : {1, 2, 3, 5, 8, 13, 21}) {
        const Array y(tokens, rows);
        for (size_t t = 0; t < tokens; t += step) {
          const size_t n = std::min(step, tokens - t);
          PackAndMultiply(w.matrix, x.view().Slice(t, n), y.view().Slice(t, n), team);
        }
        EXPECT_TRUE(SameBits(y, all)) << step << " tokens at a time, " << threads << " threads";
      }
    }
  }
}

TEST_P(MatMulTest, ReadsAndWritesOnlyItsColumns) {
  SharingTeam team(1);
  const StoredWeights w(WeightType::kF16, 5, 19, 3);
  const Array x = RandomArray(3, 40, 4);
  const Array packed(3, 19), wide(3, 11), y(3, 5);
  for (size_t t = 0; t < 3; ++t) std::copy_n(x.Row(t) + 6, 19, packed.Row(t));
  PackAndMultiply(w.matrix, packed, y, team);
  PackAndMultiply(w.matrix, x.view().Columns(6, 19), wide.view().Columns(2, 5), team);
  for (size_t t = 0; t < 3; ++t) {
    EXPECT_TRUE(SameBits(y.Row(t), wide.Row(t) + 2, 5));
    for (size_t c : {0, 1, 7, 8, 9, 10}) EXPECT_TRUE(std::isnan(wide.At(t, c)));
  }
}

TEST_P(MatMulTest, DequantizeRowIsExactForEveryHalfAndBfloat16) {
  for (WeightType type : {WeightType::kF16, WeightType::kBF16}) {
    std::vector<uint16_t> bits(65536 + 5);
    for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
    const WeightMatrix w = {bits.data(), type, 1, bits.size()};
    const Array values(1, bits.size());
    DequantizeRow(w, 0, values.data());
    for (size_t i = 0; i < bits.size(); ++i) {
      const double expected = type == WeightType::kF16 ? HalfValue(bits[i]) : Bf16Value(bits[i]);
      const double actual = values.data()[i];
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(actual)) << i;
      } else {
        ASSERT_EQ(actual, expected) << i;
        ASSERT_EQ(std::signbit(actual), std::signbit(expected)) << i;
      }
    }
  }
}

TEST_P(MatMulTest, DequantizeRowPicksTheRow) {
  const StoredWeights w(WeightType::kF32, 3, 37, 5);
  const Array row(1, 37);
  DequantizeRow(w.matrix, 2, row.data());
  for (size_t c = 0; c < 37; ++c) EXPECT_EQ(row.data()[c], w.values[2 * 37 + c]);
}

}  // namespace
}  // namespace inlay
