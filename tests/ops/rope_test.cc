#include "ops/row_ops.h"

#include <algorithm>
#include <cmath>

#include "tests/ops/op_test.h"

namespace inlay {
namespace {

using RopeTest = OnEveryTarget;
INLAY_ON_PLAIN_TARGETS(RopeTest);

TEST_P(RopeTest, AnglesAreCosinesThenSines) {
  for (size_t first : {0, 1, 31999}) {
    const Array angles(3, 10);
    RopeAngles(first, 10000, 8, angles);
    for (size_t t = 0; t < 3; ++t) {
      for (size_t i = 0; i < 5; ++i) {
        const double angle = static_cast<double>(first + t) / 8 * std::pow(10000, -2.0 * i / 10);
        EXPECT_NEAR(angles.At(t, i), std::cos(angle), 1e-7);
        EXPECT_NEAR(angles.At(t, 5 + i), std::sin(angle), 1e-7);
      }
    }
  }
}

TEST_P(RopeTest, AnglesThatDoNotTurnAreZero) {
  const Array all(3, 32), some(3, 32);
  RopeAngles(77, 1e6, 1, all);
  RopeAngles(77, 1e6, 1, some, 4);
  for (size_t t = 0; t < 3; ++t) {
    for (size_t i = 0; i < 16; ++i) {
      EXPECT_EQ(some.At(t, i), i < 4 ? all.At(t, i) : 1.0f);
      EXPECT_EQ(some.At(t, 16 + i), i < 4 ? all.At(t, 16 + i) : 0.0f);
    }
  }
}

TEST_P(RopeTest, AnglesDependOnThePositionAlone) {
  const Array all(20, 64), parts(20, 64);
  RopeAngles(100, 1e6, 1, all);
  for (size_t t = 0; t < 20; ++t) RopeAngles(100 + t, 1e6, 1, parts.view().Slice(t, 1));
  EXPECT_TRUE(SameBits(all, parts));
}

TEST_P(RopeTest, RotatesEveryHeadForAllRemainders) {
  for (const RopePairs pairs : {RopePairs::kHalves, RopePairs::kNeighbours}) {
    double worst = 0;
    for (size_t head_dim = 2; head_dim < 260; head_dim += 2) {
      const size_t heads = 3, tokens = 2, half = head_dim / 2;
      const Array x = RandomArray(tokens, heads * head_dim, 3, 1, head_dim % 5);
      const Array angles(tokens, head_dim, head_dim % 3);
      RopeAngles(17, 10000, 1, angles);
      std::vector<double> expected(x.size());
      for (size_t t = 0; t < tokens; ++t) {
        for (size_t h = 0; h < heads; ++h) {
          for (size_t i = 0; i < half; ++i) {
            const size_t real = pairs == RopePairs::kHalves ? i : 2 * i;
            const size_t imaginary = pairs == RopePairs::kHalves ? half + i : 2 * i + 1;
            const double re = x.At(t, h * head_dim + real);
            const double im = x.At(t, h * head_dim + imaginary);
            const double c = angles.At(t, i), s = angles.At(t, half + i);
            double* out = &expected[(t * heads + h) * head_dim];
            out[real] = re * c - im * s;
            out[imaginary] = re * s + im * c;
          }
        }
      }
      ApplyRope(angles, x, pairs);
      worst = std::max(worst, Nmse(x, expected));
    }
    std::printf("worst NMSE %.2g\n", worst);
    EXPECT_LE(worst, 1e-13);
  }
}

TEST_P(RopeTest, RotatesTheFirstElementsAsAWholeHeadAndLeavesTheOthers) {
  for (const RopePairs pairs : {RopePairs::kHalves, RopePairs::kNeighbours}) {
    for (const size_t n : {2, 16, 30, 64}) {
      const size_t heads = 3, head_dim = n + 9;
      const Array x = RandomArray(2, heads * head_dim, 4), firsts(2, heads * n), angles(2, n);
      RopeAngles(17, 1e7, 1, angles);
      const auto copy_firsts = [&](const Array& to) {
        for (size_t t = 0; t < 2; ++t) {
          for (size_t h = 0; h < heads; ++h)
            std::copy_n(x.Row(t) + h * head_dim, n, to.Row(t) + h * n);
        }
      };
      copy_firsts(firsts);
      ApplyRope(angles, firsts, pairs);
      const Array before = RandomArray(2, heads * head_dim, 4), after(2, heads * n);
      ApplyRope(angles, x, pairs, head_dim);
      copy_firsts(after);
      EXPECT_TRUE(SameBits(after, firsts)) << n;
      for (size_t t = 0; t < 2; ++t) {
        for (size_t c = 0; c < heads * head_dim; ++c) {
          if (c % head_dim < n) continue;
          ASSERT_EQ(x.At(t, c), before.At(t, c));
        }
      }
    }
  }
}

}  // namespace
}  // namespace inlay
