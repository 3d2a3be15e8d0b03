#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/ops/matmul/pack_and_multiply.h"
#include "tests/ops/op_test.h"
#include "tests/ops/quant/quantized_weights.h"
#include "tests/ops/sharing_team.h"

namespace inlay {
namespace {

using QuantMatMulTest = OnEveryTarget;
INLAY_ON_EVERY_TARGET(QuantMatMulTest);

// x as the product sees it: per block of 32 a multiple of the largest magnitude over 127.
std::vector<double> Rounded(ConstFloatRows x) {
  std::vector<double> values;
  for (size_t t = 0; t < x.rows; ++t) {
    for (size_t b = 0; b < x.cols; b += 32) {
      float largest = 0;
      for (size_t i = b; i < b + 32; ++i) largest = std::max(largest, std::abs(x.Row(t)[i]));
      for (size_t i = b; i < b + 32; ++i) {
        const float q = std::nearbyint(x.Row(t)[i] * (127 / largest));
        values.push_back(largest == 0 ? 0 : double{q} * double{largest} / 127);
      }
    }
  }
  return values;
}

std::vector<double> Product(const Weights& w, const std::vector<double>& x) {
  const size_t cols = w.matrix.cols;
  std::vector<double> y;
  for (size_t t = 0; t < x.size() / cols; ++t) {
    for (size_t r = 0; r < w.matrix.rows; ++r) {
      double sum = 0;
      for (size_t c = 0; c < cols; ++c) sum += double{w.values[r * cols + c]} * x[t * cols + c];
      y.push_back(sum);
    }
  }
  return y;
}

TEST_P(QuantMatMulTest, MatchesReference) {
  SharingTeam team(2);
  double worst = 0, worst_rounding = 0;
  for (WeightType type : QuantizedTypes()) {
    const size_t block = GetWeightTypeInfo(type).block_size;
    for (size_t blocks : {1, 2, 3, 5}) {
      for (size_t rows : {1, 2, 3, 4, 5, 17, 35}) {
        for (size_t tokens : {1, 3, 21}) {
          if (SmallTests() && (blocks + rows + tokens) % 3 != 0) continue;
          const Weights w(type, rows, blocks * block, static_cast<uint32_t>(rows));
          const Array x = RandomArray(tokens, blocks * block, 3, 1, rows % 5), y(tokens, rows);
          PackAndMultiply(w.matrix, x, y, team);
          const std::vector<double> exact(x.data(), x.data() + x.size());
          // Few outputs may cancel; only those of many tell a relative error.
          const double nmse = Nmse(y, Product(w, Rounded(x)));
          ASSERT_LE(nmse, tokens * rows < 17 ? 1e-9 : 1e-11)
              << GetWeightTypeInfo(type).name << ", " << rows << " rows, " << tokens << " tokens";
          if (tokens * rows < 17) continue;
          worst = std::max(worst, nmse);
          worst_rounding = std::max(worst_rounding, Nmse(y, Product(w, exact)));
        }
      }
    }
  }
  std::printf("worst NMSE %.2g; with the rounding of activations %.2g\n", worst, worst_rounding);
  EXPECT_LE(worst_rounding, 3e-4);
}

TEST_P(QuantMatMulTest, BitsDoNotDependOnTokensOrThreads) {
  for (WeightType type : QuantizedTypes()) {
    // More columns than any kernel takes at once.
    const size_t cols = 1280, rows = 77, tokens = 26;
    const Weights w(type, rows, cols, 7);
    const Array x = RandomArray(tokens, cols, 8), all(tokens, rows);
    Team one(1);
    PackAndMultiply(w.matrix, x, all, one);
    for (size_t threads : {1, 2, 3}) {
      SharingTeam team(threads);
      for (size_t step : {1, 2, 5, 13, 26}) {
        if (SmallTests() && (threads < 3 || (step != 5 && step != 13))) continue;
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

// Tokens of an expert read their activations from rows of others, in any order and repeatedly.
TEST_P(QuantMatMulTest, TakesRowsByTheirNumbers) {
  SharingTeam team(2);
  for (WeightType type : QuantizedTypes()) {
    const size_t cols = 512, rows = 40, inputs = 11;
    const Weights w(type, rows, cols, 31);
    const PackedMatrix packed = PackedMatrix::Pack(w.matrix, team);
    const Array x = RandomArray(inputs, cols, 32), all(inputs, rows);
    const OwnedOperand input(x, OperandForms::For({&packed}), team);
    MatMul(packed, *input, all, team);
    for (size_t tokens : {5, 26}) {
      std::vector<int32_t> x_rows(tokens);
      for (size_t t = 0; t < tokens; ++t) x_rows[t] = static_cast<int32_t>((7 * t + 3) % inputs);
      const Array y(tokens, rows), expected(tokens, rows);
      for (size_t t = 0; t < tokens; ++t) {
        std::copy_n(all.view().Row(static_cast<size_t>(x_rows[t])), rows, expected.view().Row(t));
      }
      const MatMulTask task = {&packed, y, x_rows.data()};
      MatMul({&task, 1}, *input, team);
      EXPECT_TRUE(SameBits(y, expected))
          << GetWeightTypeInfo(type).name << ", " << tokens << " tokens";
    }
  }
}

// Integer sums are exact, and the floats that they become are added in one order: a product has the
// same bits with an extension and without.
TEST(QuantMatMul, ExtensionsHaveTheBitsOfTheirTarget) {
  size_t compared = 0;
  for (const ExtensionTarget& target : kExtensionTargets) {
    for (WeightType type : QuantizedTypes()) {
      const size_t cols = 1280, rows = 77, tokens = 37;
      const Weights w(type, rows, cols, 11);
      const Array x = RandomArray(tokens, cols, 12), with(tokens, rows), without(tokens, rows);
      Team team(1);
      if (!ForceTarget(target.with)) continue;
      PackAndMultiply(w.matrix, x, with, team);
      ASSERT_TRUE(ForceTarget(target.without));
      PackAndMultiply(w.matrix, x, without, team);
      EXPECT_TRUE(SameBits(with, without)) << target.with << ' ' << GetWeightTypeInfo(type).name;
      ++compared;
    }
  }
  ForceTarget("");
  if (compared == 0) GTEST_SKIP() << "this CPU has no extension";
}

// The largest integer sums that there can be, which some CPU targets carry in 16 bits for a while.
TEST_P(QuantMatMulTest, ExtremeQuantsAndActivations) {
  SharingTeam team(1);
  for (WeightType type : QuantizedTypes()) {
    const size_t cols = GetWeightTypeInfo(type).block_size, tokens = 20, rows = 19;
    for (uint8_t byte : {0x00, 0x77, 0x7F, 0x80, 0x81, 0x88, 0xFF}) {
      const Weights w(type, rows, cols, 5, byte);
      for (float value : {1.0f, -1.0f}) {
        const Array x(tokens, cols), y(tokens, rows);
        std::fill_n(x.data(), x.size(), value);
        PackAndMultiply(w.matrix, x, y, team);
        const std::vector<double> expected = Product(w, Rounded(x));
        for (size_t i = 0; i < y.size(); ++i) {
          ASSERT_NEAR(y.data()[i], expected[i], 1e-5 * std::abs(expected[i]) + 1e-5)
              << GetWeightTypeInfo(type).name << ", bytes " << int{byte};
        }
      }
    }
  }
}

TEST_P(QuantMatMulTest, ZerosTinyAndExtremeActivations) {
  SharingTeam team(1);
  const Weights w(WeightType::kQ8_0, 5, 64, 9);
  const Array x(1, 64), y(1, 5);
  for (float size : {0.0f, 1e-40f, 1e-31f, 1e-29f, 1e36f}) {
    for (size_t i = 0; i < 64; ++i) x.data()[i] = (i % 3 == 0 ? -size : size) * (i < 32 ? 1 : 0.5f);
    PackAndMultiply(w.matrix, x, y, team);
    const std::vector<double> expected =
        Product(w, std::vector<double>(x.data(), x.data() + x.size()));
    for (size_t r = 0; r < 5; ++r) {
      EXPECT_NEAR(y.data()[r], expected[r], 0.01 * std::abs(expected[r]) + 1e-28) << size;
    }
  }
  for (float bad : {static_cast<float>(NAN), INFINITY}) {
    for (size_t i : {0, 31, 40}) {
      std::fill_n(x.data(), 64, 1.0f);
      x.data()[i] = bad;
      PackAndMultiply(w.matrix, x, y, team);
      for (size_t r = 0; r < 5; ++r) EXPECT_FALSE(std::isfinite(y.data()[r])) << bad;
    }
  }
}

}  // namespace
}  // namespace inlay
