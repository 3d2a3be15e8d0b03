#include "ops/pooling.h"

#include <cmath>

#include "tests/ops/op_test.h"

namespace inlay {
namespace {

TEST(PoolingTest, MeanOfEachColumn) {
  for (size_t rows : {1, 2, 67}) {
    for (size_t cols : {1, 63, 64, 200}) {
      const Array x = RandomArray(rows, cols, 1, 1, cols % 3);
      std::vector<float> mean(cols, NAN);
      MeanOfRows(x, mean.data());
      for (size_t c = 0; c < cols; ++c) {
        double sum = 0;
        for (size_t r = 0; r < rows; ++r) sum += x.At(r, c);
        EXPECT_FLOAT_EQ(mean[c], static_cast<float>(sum / static_cast<double>(rows)));
      }
    }
  }
}

// Neither sums nor squares overflow.
TEST(PoolingTest, LargeValuesDoNotOverflow) {
  const Array x(3, 2);
  for (size_t r = 0; r < 3; ++r) {
    x.Row(r)[0] = 3e38f;
    x.Row(r)[1] = 4e37f;
  }
  float mean[2];
  MeanOfRows(x, mean);
  EXPECT_FLOAT_EQ(mean[0], 3e38f);
  ScaleToLength1(x);
  EXPECT_NEAR(x.At(2, 0), 30 / std::sqrt(30.0 * 30 + 4 * 4), 1e-6);
}

TEST(PoolingTest, RowsOfLength1) {
  const Array x = RandomArray(4, 50, 2);
  const double ratio = double{x.At(1, 7)} / x.At(1, 8);
  std::fill_n(x.Row(2), 50, 0.0f);
  ScaleToLength1(x);
  for (size_t r = 0; r < 4; ++r) {
    double sum = 0;
    for (size_t c = 0; c < 50; ++c) sum += double{x.At(r, c)} * x.At(r, c);
    EXPECT_NEAR(sum, r == 2 ? 0 : 1, 1e-6);
  }
  EXPECT_NEAR(double{x.At(1, 7)} / x.At(1, 8), ratio, 1e-5);
}

}  // namespace
}  // namespace inlay
