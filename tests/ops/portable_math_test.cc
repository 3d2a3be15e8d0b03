#include "ops/portable_math.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "gtest/gtest.h"

namespace inlay {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// How many units in the last place of `exact` a value is off.
double Ulps(double value, long double exact) {
  const double nearest = static_cast<double>(exact);
  const double ulp = std::nextafter(std::abs(nearest), kInfinity) - std::abs(nearest);
  return static_cast<double>(std::abs(static_cast<long double>(value) - exact) / ulp);
}

TEST(PortableMath, Exp) {
  std::mt19937_64 random(1);
  double worst = 0;
  for (const double most : {1e-12, 1e-3, 1.0, 100.0, 707.0}) {
    std::uniform_real_distribution<double> values(-most, most);
    for (int i = 0; i < 100'000; ++i) {
      const double x = values(random);
      worst = std::max(worst, Ulps(PortableExp(x), std::exp(static_cast<long double>(x))));
    }
  }
  EXPECT_LE(worst, 2);
  EXPECT_EQ(PortableExp(0), 1);
  EXPECT_EQ(PortableExp(-709), 0);
  EXPECT_EQ(PortableExp(-kInfinity), 0);
  EXPECT_EQ(PortableExp(710), kInfinity);
  EXPECT_EQ(PortableExp(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(PortableExp(std::nan(""))));
  EXPECT_TRUE(std::isfinite(PortableExp(709.7)));
}

TEST(PortableMath, Log) {
  std::mt19937_64 random(2);
  double worst = 0;
  for (const double most : {1e-9, 1e-3, 1.0, 100.0, 707.0}) {
    std::uniform_real_distribution<double> logs(-most, most);
    for (int i = 0; i < 100'000; ++i) {
      const double x = std::exp(logs(random));
      if (x == 1) continue;
      worst = std::max(worst, Ulps(PortableLog(x), std::log(static_cast<long double>(x))));
    }
  }
  EXPECT_LE(worst, 2);
  EXPECT_EQ(PortableLog(1), 0);
  EXPECT_EQ(PortableLog(kInfinity), kInfinity);
}

TEST(PortableMath, SinCos) {
  std::mt19937_64 random(3);
  double worst = 0;
  for (const double most : {1e-6, 1.0, 1000.0, 1e6, 0x1p27}) {
    std::uniform_real_distribution<double> values(-most, most);
    for (int i = 0; i < 100'000; ++i) {
      const double x = values(random);
      const SinCos value = PortableSinCos(x);
      const auto wide = static_cast<long double>(x);
      worst = std::max(worst, std::abs(static_cast<double>(value.sin - std::sin(wide))));
      worst = std::max(worst, std::abs(static_cast<double>(value.cos - std::cos(wide))));
    }
  }
  EXPECT_LE(worst, 0x1p-51);
  EXPECT_EQ(PortableSinCos(0).sin, 0);
  EXPECT_EQ(PortableSinCos(0).cos, 1);
}

// The very bits, which a compiler that fuses or reorders operations would change.
TEST(PortableMath, BitsAreFixed) {
  EXPECT_EQ(PortableExp(-1.7), 0x1.7622c78a98a07p-3);
  EXPECT_EQ(PortableLog(10000), 0x1.26bb1bbb55516p+3);
  EXPECT_EQ(PortableSinCos(131071.25).sin, -0x1.84fb7bdb2ebecp-1);
  EXPECT_EQ(PortableSinCos(131071.25).cos, -0x1.4cebe75ff4ee3p-1);
}

}  // namespace
}  // namespace inlay
