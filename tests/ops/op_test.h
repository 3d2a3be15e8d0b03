// What the tests of the ops share: a fixture per CPU target, random data, and distances.
#ifndef INLAY_TESTS_OPS_OP_TEST_H_
#define INLAY_TESTS_OPS_OP_TEST_H_

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "ops/cpu/cpu_target.h"
#include "ops/views.h"

namespace inlay {

// Runs a test once per CPU target that is compiled in and that this CPU has.
class OnEveryTarget : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_TRUE(ForceTarget(GetParam())); }
  void TearDown() override { ForceTarget(""); }
};

#define INLAY_ON_EVERY_TARGET(suite)                                                    \
  INSTANTIATE_TEST_SUITE_P(Targets, suite, testing::ValuesIn(inlay::RunnableTargets()), \
                           [](const auto& info) { return info.param; })

// Without those that are another one with an extension, which changes matrix products alone.
inline std::vector<std::string> PlainTargets() {
  std::vector<std::string> targets = RunnableTargets();
  std::erase_if(targets, [](const std::string& target) {
    ForceTarget(target);
    return ChosenExtension() != Extension::kNone;
  });
  ForceTarget("");
  return targets;
}

#define INLAY_ON_PLAIN_TARGETS(suite)                                                \
  INSTANTIATE_TEST_SUITE_P(Targets, suite, testing::ValuesIn(inlay::PlainTargets()), \
                           [](const auto& info) { return info.param; })

// CPU targets with an extension, and the same without.
struct ExtensionTarget {
  Extension extension;
  const char* with;
  const char* without;
};
inline constexpr ExtensionTarget kExtensionTargets[] = {
    {Extension::kAmx, "AVX3_DL_AMX", "AVX3_DL"},   {Extension::kVnni, "AVX3_VNNI", "AVX3"},
    {Extension::kVnni, "AVX2_VNNI", "AVX2"},       {Extension::kI8mm, "SVE2_I8MM", "SVE2"},
    {Extension::kI8mm, "SVE_I8MM", "SVE"},         {Extension::kI8mm, "NEON_I8MM", "NEON"},
    {Extension::kDotprod, "NEON_DOTPROD", "NEON"},
};

// Whether the largest tests are to do less, because an emulator takes a hundred times as long.
inline bool SmallTests() { return std::getenv("INLAY_SMALL_TESTS") != nullptr; }

// Rows in memory of exactly their size, `misalignment` floats after an aligned address, so that a
// sanitizer sees each byte read beyond them.
class Array {
 public:
  Array(size_t rows, size_t cols, size_t misalignment = 0)
      : memory_(new float[rows * cols + misalignment]),
        rows_(memory_.get() + misalignment, rows, cols) {
    for (size_t i = 0; i < rows * cols; ++i) rows_.data[i] = NAN;
  }

  operator FloatRows() const { return rows_; }       // NOLINT(google-explicit-constructor)
  operator ConstFloatRows() const { return rows_; }  // NOLINT(google-explicit-constructor)
  const FloatRows& view() const { return rows_; }
  float* data() const { return rows_.data; }
  size_t size() const { return rows_.rows * rows_.cols; }
  float* Row(size_t r) const { return rows_.Row(r); }
  float& At(size_t r, size_t c) const { return rows_.Row(r)[c]; }

 private:
  std::unique_ptr<float[]> memory_;
  FloatRows rows_;
};

// Normally distributed values, the same for the same seed.
inline void FillRandom(const Array& array, uint32_t seed, float sigma = 1, float mean = 0) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(mean, sigma);
  for (size_t i = 0; i < array.size(); ++i) array.data()[i] = normal(generator);
}

inline Array RandomArray(size_t rows, size_t cols, uint32_t seed, float sigma = 1,
                         size_t misalignment = 0) {
  Array array(rows, cols, misalignment);
  FillRandom(array, seed, sigma);
  return array;
}

// |a - b|^2 / |b|^2 over n elements; infinite if any element is NaN, so that std::max keeps it.
inline double Nmse(const float* a, const double* b, size_t n) {
  double error = 0, norm = 0;
  for (size_t i = 0; i < n; ++i) {
    error += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  if (std::isnan(error)) return std::numeric_limits<double>::infinity();
  return error == 0 ? 0 : error / norm;
}

inline double Nmse(absl::Span<const float> a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  return Nmse(a.data(), b.data(), b.size());
}

inline double Nmse(const Array& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  return Nmse(a.data(), b.data(), b.size());
}

inline bool SameBits(const float* a, const float* b, size_t n) {
  return n == 0 || std::memcmp(a, b, n * sizeof(float)) == 0;
}

inline bool SameBits(const Array& a, const Array& b) {
  return a.size() == b.size() && SameBits(a.data(), b.data(), a.size());
}

// The value of an IEEE half.
inline double HalfValue(uint16_t bits) {
  const double sign = bits & 0x8000 ? -1 : 1;
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent == 31) return fraction ? std::nan("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

inline double Bf16Value(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

}  // namespace inlay

#endif  // INLAY_TESTS_OPS_OP_TEST_H_
