#include "ops/router.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace inlay {
namespace {

std::vector<double> Reference(size_t k, const std::vector<float>& logits) {
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  std::vector<double> shares(logits.size(), 0.0);
  double sum = 0;
  for (size_t i = 0; i < k; ++i) sum += std::exp(double{logits[order[i]]});
  for (size_t i = 0; i < k; ++i) shares[order[i]] = std::exp(double{logits[order[i]]}) / sum;
  return shares;
}

TEST(RouterTest, AgreesWithSorting) {
  std::mt19937 random(1);
  for (size_t n : {1, 2, 7, 8, 64, 72}) {
    for (size_t k = 1; k <= std::min<size_t>(n, 10); ++k) {
      std::vector<float> logits(n);
      // Few distinct values, so that ties are common.
      for (float& v : logits) v = static_cast<float>(static_cast<int>(random() % 9) - 4);
      const std::vector<double> expected = Reference(k, logits);
      KeepTopSoftmax(k, logits.data(), n);
      for (size_t i = 0; i < n; ++i) {
        EXPECT_NEAR(logits[i], expected[i], 1e-6) << "n " << n << " k " << k << " i " << i;
        EXPECT_EQ(logits[i] == 0, expected[i] == 0);
      }
    }
  }
}

TEST(RouterTest, NanIsNotChosenWhileThereAreOthers) {
  std::vector<float> logits = {std::nanf(""), -5.0f, std::nanf(""), 3.0f};
  KeepTopSoftmax(2, logits.data(), logits.size());
  EXPECT_EQ(logits[0], 0.0f);
  EXPECT_EQ(logits[2], 0.0f);
  EXPECT_NEAR(logits[1] + logits[3], 1.0f, 1e-6);
}

TEST(RouterTest, LargeLogitsDoNotOverflow) {
  std::vector<float> logits = {3e38f, -3e38f, 2e38f};
  KeepTopSoftmax(2, logits.data(), logits.size());
  EXPECT_EQ(logits[0], 1.0f);
  EXPECT_EQ(logits[1], 0.0f);
  EXPECT_EQ(logits[2], 0.0f);
}

}  // namespace
}  // namespace inlay
