#include "ops/softmax.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "ops/portable_math.h"
#include "ops/row_kernels.h"
#include "tests/ops/op_test.h"

namespace inlay {
namespace {

using SoftmaxTest = OnEveryTarget;
INLAY_ON_PLAIN_TARGETS(SoftmaxTest);

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST_P(SoftmaxTest, ArgMaxIsTheFirstOfTheLargest) {
  for (size_t n = 1; n < 100; ++n) {
    for (size_t where = 0; where < n; ++where) {
      const Array x = RandomArray(1, n, 1, 1, n % 5);
      x.data()[where] = 100;
      x.data()[where + (n - where) / 2] = 100;
      ASSERT_EQ(ArgMax(x.data(), n), where);
    }
  }
}

TEST_P(SoftmaxTest, ArgMaxNeverPicksNan) {
  std::vector<float> x(37, NAN);
  EXPECT_EQ(ArgMax(x.data(), x.size()), 0u);
  x[21] = -kInf;
  EXPECT_EQ(ArgMax(x.data(), x.size()), 21u);
  x[36] = -5;
  EXPECT_EQ(ArgMax(x.data(), x.size()), 36u);
  x[1] = kInf;
  EXPECT_EQ(ArgMax(x.data(), x.size()), 1u);
}

// Of every length of a rest, and where the result is infinite, 0 or no number.
TEST_P(SoftmaxTest, ExpOfRowHasTheBitsOfPortableExp) {
  std::mt19937_64 random(4);
  for (const double most : {1e-12, 1e-3, 1.0, 100.0, 720.0}) {
    std::uniform_real_distribution<double> values(-most, most);
    for (size_t n = 0; n < 70; ++n) {
      std::vector<double> x(n + 1, 7);
      for (size_t i = 0; i < n; ++i) x[i] = values(random);
      for (const double special :
           {0.0, -0.0, 709.78, 709.79, 710.0, -708.0, -708.5, 1.0 * kInf, -1.0 * kInf, 1.0 * NAN}) {
        if (n > 20) x[random() % n] = special;
      }
      std::vector<double> e = x;
      ExpOfRow(e.data(), n);
      for (size_t i = 0; i < n; ++i) {
        ASSERT_EQ(std::bit_cast<uint64_t>(e[i]), std::bit_cast<uint64_t>(PortableExp(x[i])))
            << x[i];
      }
      ASSERT_EQ(e[n], 7);
    }
  }
}

TEST_P(SoftmaxTest, WeightsOfValuesByTemperature) {
  std::vector<double> weights = {1, 2, 3, 4};
  SetWeights({}, 1, weights);
  EXPECT_TRUE(weights.empty());
  SetWeights({{5, 3}, {4.5, 0}, {1, 2}}, 0.5, weights);
  EXPECT_EQ(weights, (std::vector<double>{1, PortableExp(-1), PortableExp(-8)}));
}

TEST_P(SoftmaxTest, LogSumExpMatchesReference) {
  for (size_t n : {1, 2, 3, 7, 16, 33, 1001, 50000}) {
    for (float shift : {0.0f, 500.0f, -500.0f}) {
      const Array x = RandomArray(1, n, 3, 4, n % 3);
      double sum = 0;
      for (size_t i = 0; i < n; ++i) {
        x.data()[i] += shift;
        sum += std::exp(double{x.data()[i]} - shift);
      }
      ASSERT_NEAR(LogSumExp(x.data(), n), shift + std::log(sum), 1e-12 * (1 + std::abs(shift)));
    }
  }
}

TEST_P(SoftmaxTest, LogSumExpOfExtremes) {
  std::vector<float> x(19, -kInf);
  EXPECT_EQ(LogSumExp(x.data(), x.size()), -kInf);
  EXPECT_EQ(LogSumExp(x.data(), 0), -kInf);
  x[4] = 3;
  EXPECT_EQ(LogSumExp(x.data(), x.size()), 3);
  x[5] = kInf;
  EXPECT_EQ(LogSumExp(x.data(), x.size()), kInf);
  x[18] = NAN;
  EXPECT_TRUE(std::isnan(LogSumExp(x.data(), x.size())));
}

TEST_P(SoftmaxTest, TopKIsASortedPrefix) {
  for (size_t n : {1, 5, 100, 1000, 5000}) {
    const Array x = RandomArray(1, n, 4);
    // Many equal values, zeros of both signs, infinities, and NaNs, which come last.
    for (size_t i = 0; i < n; ++i) x.data()[i] = std::round(x.data()[i] * 4);
    for (size_t i = 3; i < n; i += 7) x.data()[i] = i % 2 == 0 ? NAN : -NAN;
    for (size_t i = 4; i < n; i += 50) x.data()[i] = i % 4 == 0 ? kInf : -kInf;
    for (size_t i = 2; i < n; i += 30) x.data()[i] = i % 4 == 0 ? 0.0f : -0.0f;
    std::vector<size_t> order(n);
    for (size_t i = 0; i < n; ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      const float u = x.data()[a], v = x.data()[b];
      if (std::isnan(u) != std::isnan(v)) return std::isnan(v);
      return std::isnan(u) || u == v ? a < b : u > v;
    });
    for (size_t k : {size_t{0}, size_t{1}, size_t{3}, size_t{64}, n / 2, n, n + 1}) {
      std::vector<IndexedValue> top(7);  // what was in it is gone
      TopK(x.data(), n, k, top);
      ASSERT_EQ(top.size(), std::min(k, n));
      for (size_t i = 0; i < top.size(); ++i) {
        ASSERT_EQ(static_cast<size_t>(top[i].index), order[i]);
        ASSERT_TRUE(SameBits(&top[i].value, &x.data()[order[i]], 1));
      }
    }
  }
}

TEST_P(SoftmaxTest, AllFiniteSeesEveryElement) {
  EXPECT_TRUE(AllFinite(nullptr, 0));
  for (size_t n = 1; n < 70; ++n) {
    const Array x = RandomArray(1, n, 3, 1, n % 4);
    ASSERT_TRUE(AllFinite(x.data(), n));
    for (size_t i = 0; i < n; ++i) {
      for (float bad : {kInf, -kInf, static_cast<float>(NAN)}) {
        const float before = x.data()[i];
        x.data()[i] = bad;
        ASSERT_FALSE(AllFinite(x.data(), n)) << i << " of " << n;
        x.data()[i] = before;
      }
    }
  }
}

}  // namespace
}  // namespace inlay
