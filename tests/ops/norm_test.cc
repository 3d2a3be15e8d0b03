#include "ops/row_ops.h"

#include <algorithm>
#include <cmath>

#include "tests/ops/op_test.h"

namespace inlay {
namespace {

using NormTest = OnEveryTarget;
INLAY_ON_PLAIN_TARGETS(NormTest);

std::vector<double> Reference(const Array& x, const Array& weight, double epsilon) {
  const ConstFloatRows rows = x;
  std::vector<double> y;
  for (size_t r = 0; r < rows.rows; ++r) {
    double sum = 0;
    for (size_t c = 0; c < rows.cols; ++c) sum += double{x.At(r, c)} * x.At(r, c);
    const double root = std::sqrt(sum / static_cast<double>(rows.cols) + epsilon);
    for (size_t c = 0; c < rows.cols; ++c) y.push_back(x.At(r, c) / root * weight.data()[c]);
  }
  return y;
}

TEST_P(NormTest, MatchesReferenceForAllRemainders) {
  double worst = 0;
  for (size_t cols = 1; cols < 200; ++cols) {
    const Array x = RandomArray(3, cols, static_cast<uint32_t>(cols), 2, cols % 7);
    const Array weight = RandomArray(1, cols, 1, 1, cols % 5), y(3, cols, cols % 3);
    RmsNorm(x, weight.data(), 1e-5f, y);
    worst = std::max(worst, Nmse(y, Reference(x, weight, 1e-5f)));
  }
  std::printf("worst NMSE %.2g\n", worst);
  EXPECT_LE(worst, 1e-13);
}

TEST_P(NormTest, LongRowsAndSmallValuesWhereEpsilonCounts) {
  const Array x = RandomArray(2, 14336 + 3, 5, 1e-3f), weight = RandomArray(1, 14336 + 3, 6);
  const Array y(2, 14336 + 3);
  RmsNorm(x, weight.data(), 1e-6f, y);
  EXPECT_LE(Nmse(y, Reference(x, weight, 1e-6f)), 1e-13);
}

// The square of 1e25 is no float.
TEST_P(NormTest, SquaresThatOverflow) {
  for (const size_t cols : {1, 20, 77}) {
    const Array x = RandomArray(2, cols, 5, 1e25f), y(2, cols);
    const Array weight = RandomArray(1, cols, 6);
    RmsNorm(x, weight.data(), 1e-6f, y);
    EXPECT_LE(Nmse(y, Reference(x, weight, 1e-6f)), 1e-13) << cols;
    L2Norm(x, 1e-6f, 1, y);
    for (size_t r = 0; r < 2; ++r) {
      double sum = 0;
      for (size_t c = 0; c < cols; ++c) sum += double{y.At(r, c)} * y.At(r, c);
      EXPECT_NEAR(sum, 1, 1e-5) << cols;
    }
  }
}

TEST_P(NormTest, InPlaceAndRowByRowGiveTheSameBits) {
  const Array x = RandomArray(5, 77, 9), weight = RandomArray(1, 77, 10), y(5, 77), z(5, 77);
  RmsNorm(x, weight.data(), 1e-6f, y);
  for (size_t r = 0; r < 5; ++r) {
    RmsNorm(x.view().Slice(r, 1), weight.data(), 1e-6f, z.view().Slice(r, 1));
  }
  RmsNorm(x, weight.data(), 1e-6f, x);
  EXPECT_TRUE(SameBits(x, y));
  EXPECT_TRUE(SameBits(z, y));
}

TEST_P(NormTest, LengthsBecomeTheScale) {
  double worst = 0;
  for (size_t cols = 1; cols < 200; ++cols) {
    const Array x = RandomArray(3, cols, static_cast<uint32_t>(cols), 2, cols % 7);
    const Array y(3, cols, cols % 3);
    // The second row is shorter than epsilon, the third is zero.
    for (size_t c = 0; c < cols; ++c) {
      x.At(1, c) *= 1e-9f;
      x.At(2, c) = 0;
    }
    L2Norm(x, 1e-6f, 0.125f, y);
    std::vector<double> expected;
    for (size_t r = 0; r < 3; ++r) {
      double sum = 0;
      for (size_t c = 0; c < cols; ++c) sum += double{x.At(r, c)} * x.At(r, c);
      const double divisor = std::max(std::sqrt(sum), double{1e-6f});
      for (size_t c = 0; c < cols; ++c) expected.push_back(x.At(r, c) * 0.125 / divisor);
    }
    worst = std::max({worst, Nmse(y.Row(0), expected.data(), cols),
                      Nmse(y.Row(1), expected.data() + cols, cols),
                      Nmse(y.Row(2), expected.data() + 2 * cols, cols)});
    L2Norm(x, 1e-6f, 0.125f, x);
    ASSERT_TRUE(SameBits(x, y)) << cols;
  }
  std::printf("worst NMSE %.2g\n", worst);
  EXPECT_LE(worst, 1e-13);
}

}  // namespace
}  // namespace inlay
