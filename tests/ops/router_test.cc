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

TEST(RouterTest, TheBiasChoosesAndDoesNotWeigh) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  for (size_t n : {1, 6, 32, 128}) {
    for (size_t k = 1; k <= std::min<size_t>(n, 8); ++k) {
      std::vector<float> logits(n), bias(n);
      for (float& v : logits) v = normal(random);
      for (float& v : bias) v = normal(random);
      std::vector<double> p(n), score(n), expected(n, 0.0);
      for (size_t i = 0; i < n; ++i) {
        p[i] = 1 / (1 + std::exp(-double{logits[i]}));
        score[i] = p[i] + bias[i];
      }
      std::vector<size_t> order(n);
      std::iota(order.begin(), order.end(), size_t{0});
      std::sort(order.begin(), order.end(),
                [&](size_t a, size_t b) { return score[a] > score[b]; });
      double sum = 0;
      for (size_t i = 0; i < k; ++i) sum += p[order[i]];
      for (size_t i = 0; i < k; ++i) expected[order[i]] = p[order[i]] / sum;
      KeepTopBiasedLogistic(k, bias.data(), logits.data(), n);
      for (size_t i = 0; i < n; ++i) {
        EXPECT_NEAR(logits[i], expected[i], 1e-6) << "n " << n << " k " << k << " i " << i;
        EXPECT_EQ(logits[i] == 0, expected[i] == 0);
      }
    }
  }
}

// The definition: groups are ordered by the sum of their two largest scores, then experts of the
// first groups by theirs.
std::vector<double> GroupedReference(size_t k, const std::vector<float>& bias,
                                     const std::vector<float>& logits, ExpertGroups groups,
                                     double scale) {
  const size_t n = logits.size(), size = n / groups.count;
  std::vector<double> p(n), score(n), sums(groups.count), shares(n, 0.0);
  for (size_t i = 0; i < n; ++i) {
    p[i] = 1 / (1 + std::exp(-double{logits[i]}));
    score[i] = p[i] + bias[i];
  }
  for (size_t g = 0; g < groups.count; ++g) {
    std::vector<double> of_group(&score[g * size], &score[g * size] + size);
    std::sort(of_group.rbegin(), of_group.rend());
    sums[g] = of_group[0] + of_group[1];
  }
  std::vector<size_t> best(groups.count), order;
  std::iota(best.begin(), best.end(), size_t{0});
  std::sort(best.begin(), best.end(), [&](size_t a, size_t b) { return sums[a] > sums[b]; });
  for (size_t g = 0; g < groups.used; ++g) {
    for (size_t i = 0; i < size; ++i) order.push_back(best[g] * size + i);
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return score[a] > score[b]; });
  double sum = 0;
  for (size_t i = 0; i < k; ++i) sum += p[order[i]];
  for (size_t i = 0; i < k; ++i) shares[order[i]] = scale * p[order[i]] / sum;
  return shares;
}

TEST(RouterTest, OnlyTheBestGroupsAreChosenFrom) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  size_t others = 0;  // experts that are chosen because of their group
  const ExpertGroups all[] = {{2, 1}, {4, 2}, {8, 3}, {8, 8}, {64, 5}};
  for (const ExpertGroups& groups : all) {
    for (size_t size : {2, 3, 16}) {
      for (size_t k = 1; k <= std::min<size_t>(groups.used * size, 8); ++k) {
        const size_t n = groups.count * size;
        std::vector<float> logits(n), bias(n);
        for (float& v : logits) v = normal(random);
        for (float& v : bias) v = normal(random);
        const std::vector<double> expected = GroupedReference(k, bias, logits, groups, 2.5);
        std::vector<float> ungrouped = logits;
        KeepTopBiasedLogistic(k, bias.data(), ungrouped.data(), n);
        KeepTopBiasedLogistic(k, bias.data(), logits.data(), n, groups, 2.5f);
        for (size_t i = 0; i < n; ++i) {
          EXPECT_NEAR(logits[i], expected[i], 1e-6) << "n " << n << " k " << k << " i " << i;
          EXPECT_EQ(logits[i] == 0, expected[i] == 0);
          if (logits[i] != 0 && ungrouped[i] == 0) ++others;
        }
      }
    }
  }
  EXPECT_GT(others, 50u);
}

TEST(RouterTest, EqualGroupsGoToTheLowerIndex) {
  const float bias[] = {0, 0, 0, 0, 0, 0, 0, 0};
  std::vector<float> equal = {0, 1, 1, 0, 2, -9, 1, 1};
  KeepTopBiasedLogistic(2, bias, equal.data(), 8, {.count = 4, .used = 1});
  // logistic(1) + logistic(1) is the largest sum, although 2 is the largest logit.
  EXPECT_EQ(equal, (std::vector<float>{0, 0, 0, 0, 0, 0, 0.5f, 0.5f}));
  equal = {-1, -1, 1, 0, 0, 1, 1, 0};
  KeepTopBiasedLogistic(1, bias, equal.data(), 8, {.count = 4, .used = 1});
  EXPECT_EQ(equal, (std::vector<float>{0, 0, 1, 0, 0, 0, 0, 0}));
}

// A router or a bias that is damaged must not be routed around: the answer would be wrong without
// an error.
TEST(RouterTest, OneNanMakesAllWeightsNan) {
  const float nan = std::nanf("");
  const auto expect_nan = [](const std::vector<float>& weights, std::ptrdiff_t k) {
    EXPECT_EQ(std::count_if(weights.begin(), weights.end(), [](float w) { return std::isnan(w); }),
              k);
    EXPECT_EQ(std::count(weights.begin(), weights.end(), 0.0f),
              static_cast<std::ptrdiff_t>(weights.size()) - k);
  };
  for (size_t at = 0; at < 8; ++at) {
    std::vector<float> logits = {9, 4, 1, 0, -5, 2, -1, -2};
    logits[at] = nan;
    std::vector<float> softmax = logits, logistic = logits, grouped = logits;
    KeepTopSoftmax(2, softmax.data(), 8);
    expect_nan(softmax, 2);
    const std::vector<float> bias(8);
    KeepTopBiasedLogistic(2, bias.data(), logistic.data(), 8);
    expect_nan(logistic, 2);
    KeepTopBiasedLogistic(3, bias.data(), grouped.data(), 8, {.count = 4, .used = 2});
    expect_nan(grouped, 3);
    std::vector<float> damaged(8), biased = {9, 4, 1, 0, -5, 2, -1, -2};
    damaged[at] = nan;
    KeepTopBiasedLogistic(2, damaged.data(), biased.data(), 8);
    expect_nan(biased, 2);
  }
  // Always k, whatever the scores are.
  std::vector<float> all(8, nan);
  KeepTopBiasedLogistic(3, all.data(), all.data(), 8, {.count = 4, .used = 2});
  expect_nan(all, 3);
}

TEST(RouterTest, EqualScoresGoToTheLowerIndexAndTinyOnesAreNotBlownUp) {
  const float bias[] = {0, 0, 0};
  std::vector<float> equal = {1.0f, 2.0f, 2.0f};
  KeepTopBiasedLogistic(1, bias, equal.data(), 3);
  EXPECT_EQ(equal, (std::vector<float>{0, 1, 0}));
  // logistic(-20) = 2.06e-9, and the sum counts as 2^-14.
  std::vector<float> tiny = {-20.0f, -30.0f, -1000.0f};
  KeepTopBiasedLogistic(1, bias, tiny.data(), 3);
  EXPECT_NEAR(tiny[0], 2.0611536e-9 * 16384, 1e-9);
  EXPECT_EQ(tiny[1], 0.0f);
  EXPECT_EQ(tiny[2], 0.0f);
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
