#include "ops/row_ops.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/ops/op_test.h"

namespace inlay {
namespace {

using ElementwiseTest = OnEveryTarget;
INLAY_ON_PLAIN_TARGETS(ElementwiseTest);

double GeluTanh(double g) {
  // 0.5 (1 + tanh(u)) in a form that does not cancel.
  const double u = std::sqrt(2 / M_PI) * (g + 0.044715 * g * g * g);
  return g / (1 + std::exp(-2 * u));
}

double Silu(double g) { return g / (1 + std::exp(-g)); }

// Values over the whole range, with zeros, subnormals and values whose exponential overflows.
Array WideValues(size_t n, uint32_t seed, size_t misalignment) {
  Array values = RandomArray(1, n, seed, 3, misalignment);
  const float special[] = {0, -0.0f, 1e-42f, -1e-20f, 88, -88, 90, -90, 110, -110, 3e4f, -3e4f};
  for (size_t i = 0; i < n; i += 5) values.data()[i] = special[(i / 5 + seed) % 12];
  return values;
}

// Largest error relative to the reference, or to 1e-30 where it is below: e^-x overflows near
// there, and the result is zero.
double WorstRelative(const float* y, size_t n, const std::function<double(size_t)>& reference) {
  double worst = 0;
  for (size_t i = 0; i < n; ++i) {
    const double expected = reference(i);
    const double error = std::abs(y[i] - expected) / std::max(std::abs(expected), 1e-30);
    worst = std::max(worst, std::isnan(error) ? INFINITY : error);
  }
  return worst;
}

TEST_P(ElementwiseTest, LogisticMatchesReferenceForAllRemainders) {
  double worst = 0;
  for (size_t n = 1; n < 150; ++n) {
    const Array x = WideValues(n, static_cast<uint32_t>(n), n % 5);
    const Array y = WideValues(n, static_cast<uint32_t>(n), n % 7);
    Logistic(y);
    worst = std::max(worst, WorstRelative(y.data(), n, [&](size_t i) {
                       return 1 / (1 + std::exp(-double{x.data()[i]}));
                     }));
  }
  std::printf("worst relative error %.2g\n", worst);
  EXPECT_LE(worst, 5e-7);
}

TEST_P(ElementwiseTest, SquaredReluMatchesReferenceForAllRemainders) {
  double worst = 0;
  for (size_t n = 1; n < 150; ++n) {
    const Array x = WideValues(n, static_cast<uint32_t>(n), n % 5);
    const Array y = WideValues(n, static_cast<uint32_t>(n), n % 7);
    SquaredRelu(y);
    worst = std::max(worst, WorstRelative(y.data(), n, [&](size_t i) {
                       const double positive = std::max(double{x.data()[i]}, 0.0);
                       return positive * positive;
                     }));
  }
  EXPECT_LE(worst, 1e-7);
  const Array nan = RandomArray(1, 3, 1);
  nan.data()[1] = NAN;
  SquaredRelu(nan);
  EXPECT_TRUE(std::isnan(nan.data()[1]));
}

TEST_P(ElementwiseTest, GatesMatchReferenceForAllRemainders) {
  double gelu = 0, silu = 0;
  for (size_t n = 1; n < 150; ++n) {
    const Array gate = WideValues(n, static_cast<uint32_t>(n), n % 5);
    const Array up = RandomArray(1, n, 2, 1, n % 3), y(1, n, n % 7);
    GeluTanhGate(gate, up, y);
    gelu = std::max(gelu, WorstRelative(y.data(), n, [&](size_t i) {
                      return GeluTanh(gate.data()[i]) * up.data()[i];
                    }));
    SiluGate(gate, up, y);
    silu = std::max(silu, WorstRelative(y.data(), n, [&](size_t i) {
                      return Silu(gate.data()[i]) * up.data()[i];
                    }));
  }
  std::printf("worst relative error: GELU %.2g, SiLU %.2g\n", gelu, silu);
  EXPECT_LE(gelu, 1e-5);
  EXPECT_LE(silu, 5e-7);
}

TEST_P(ElementwiseTest, SumsScalesAndCapsMatchReference) {
  double sum = 0, scale = 0, cap = 0;
  for (size_t n = 1; n < 150; ++n) {
    const Array y = RandomArray(1, n, 2, 1, n % 3);
    Array x = RandomArray(1, n, 3, 1, n % 5);
    std::vector<double> before(x.data(), x.data() + n);
    AddScaled(y, 0.22f, x);
    std::vector<double> expected(n);
    for (size_t i = 0; i < n; ++i) expected[i] = before[i] + double{0.22f} * y.data()[i];
    sum = std::max(sum, Nmse(x, expected));

    before.assign(x.data(), x.data() + n);
    Scale(3.5f, x);
    scale = std::max(scale, WorstRelative(x.data(), n, [&](size_t i) { return before[i] * 3.5; }));

    x = WideValues(n, static_cast<uint32_t>(n), n % 5);
    before.assign(x.data(), x.data() + n);
    SoftCap(30, x);
    cap = std::max(
        cap, WorstRelative(x.data(), n, [&](size_t i) { return 30 * std::tanh(before[i] / 30); }));
  }
  std::printf("AddScaled NMSE %.2g, SoftCap relative error %.2g\n", sum, cap);
  EXPECT_LE(sum, 1e-13);
  EXPECT_LE(scale, 1e-7);
  EXPECT_LE(cap, 5e-7);
}

TEST_P(ElementwiseTest, BitsDoNotDependOnThePlaceInTheRow) {
  const size_t n = 67;
  const Array gate = WideValues(n, 5, 0), up = RandomArray(1, n, 6);
  const Array gelu(1, n), silu(1, n), cap(1, n), sum(1, n);
  GeluTanhGate(gate, up, gelu);
  SiluGate(gate, up, silu);
  std::copy_n(gate.data(), n, cap.data());
  SoftCap(50, cap);
  std::copy_n(gate.data(), n, sum.data());
  AddScaled(up, 0.3f, sum);
  for (size_t i = 0; i < n; ++i) {
    const Array g(1, 1), u(1, 1), y(1, 1);
    g.data()[0] = gate.data()[i];
    u.data()[0] = up.data()[i];
    GeluTanhGate(g, u, y);
    EXPECT_TRUE(SameBits(y.data(), gelu.data() + i, 1)) << i;
    SiluGate(g, u, y);
    EXPECT_TRUE(SameBits(y.data(), silu.data() + i, 1)) << i;
    y.data()[0] = gate.data()[i];
    SoftCap(50, y);
    EXPECT_TRUE(SameBits(y.data(), cap.data() + i, 1)) << i;
    y.data()[0] = gate.data()[i];
    AddScaled(u, 0.3f, y);
    EXPECT_TRUE(SameBits(y.data(), sum.data() + i, 1)) << i;
  }
}

TEST_P(ElementwiseTest, MultiplyIsExactInPlaceToo) {
  for (size_t n : {1, 3, 16, 35, 257}) {
    const Array a = RandomArray(2, n, 1), b = RandomArray(2, n, 2), y(2, n),
                x = RandomArray(2, n, 1);
    Multiply(a, b, y);
    Multiply(x, b, x);
    for (size_t i = 0; i < 2 * n; ++i) ASSERT_EQ(y.data()[i], a.data()[i] * b.data()[i]);
    EXPECT_TRUE(SameBits(x, y));
  }
}

TEST_P(ElementwiseTest, InPlaceOnEitherInput) {
  const Array gate = RandomArray(2, 35, 1), up = RandomArray(2, 35, 2), y(2, 35);
  GeluTanhGate(gate, up, y);
  const Array a = RandomArray(2, 35, 1), b = RandomArray(2, 35, 2);
  GeluTanhGate(a, up, a);
  GeluTanhGate(gate, b, b);
  EXPECT_TRUE(SameBits(a, y));
  EXPECT_TRUE(SameBits(b, y));
}

TEST_P(ElementwiseTest, NanStaysNan) {
  const Array x = RandomArray(1, 20, 1), up = RandomArray(1, 20, 2), y(1, 20);
  for (size_t i : {3, 19}) x.data()[i] = NAN;
  for (int op = 0; op < 3; ++op) {
    if (op == 0) GeluTanhGate(x, up, y);
    if (op == 1) SiluGate(x, up, y);
    if (op == 2) {
      std::copy_n(x.data(), 20, y.data());
      SoftCap(30, y);
    }
    for (size_t i = 0; i < 20; ++i) {
      EXPECT_EQ(std::isnan(y.data()[i]), i == 3 || i == 19) << op << ", " << i;
    }
  }
}

}  // namespace
}  // namespace inlay
