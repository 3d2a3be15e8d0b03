#include "ops/cpu/dot_probes.h"

#include "ops/cpu/extension.h"
// Every CPU target that some kernel is compiled for.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS INLAY_DISABLED_TARGETS(INLAY_UNUSED_TARGETS)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/dot_probes.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"
// After all headers of Highway.
#include "ops/cpu/extension-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {
namespace {

// Operations per lane of bytes or bfloat16: twice as many where two rows are multiplied by two
// tokens at once.
constexpr double kOperationsPerLane = kMatrices ? 4 : 2;

// Each loop keeps twelve sums, more than latency times throughput on any CPU we know, and
// returns how many operations a round of it does (a multiplication and an addition count as two).
// The sums go to `out`.
// The sums start with different values, or the compiler would see that they are all the same.
// clang-format off
#define INLAY_START(s, n, VALUE) auto s = [&](int32_t i) HWY_ATTR { return VALUE; }(n);
#define INLAY_TWELVE_STARTS(VALUE)                                                   \
  INLAY_START(s0, 0, VALUE) INLAY_START(s1, 1, VALUE) INLAY_START(s2, 2, VALUE)      \
  INLAY_START(s3, 3, VALUE) INLAY_START(s4, 4, VALUE) INLAY_START(s5, 5, VALUE)      \
  INLAY_START(s6, 6, VALUE) INLAY_START(s7, 7, VALUE) INLAY_START(s8, 8, VALUE)      \
  INLAY_START(s9, 9, VALUE) INLAY_START(s10, 10, VALUE) INLAY_START(s11, 11, VALUE)
#define INLAY_TWELVE_SUMS(STEP)                                         \
  for (size_t i = 0; i < rounds; ++i) {                                 \
    STEP(s0) STEP(s1) STEP(s2) STEP(s3) STEP(s4) STEP(s5)               \
    STEP(s6) STEP(s7) STEP(s8) STEP(s9) STEP(s10) STEP(s11)             \
  }
// clang-format on
#define INLAY_ADD_UP                                          \
  hn::Add(hn::Add(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)),  \
                  hn::Add(hn::Add(s4, s5), hn::Add(s6, s7))), \
          hn::Add(hn::Add(s8, s9), hn::Add(s10, s11)))

double Int8Rounds(size_t rounds, int32_t seed, float* out) {
  const hn::ScalableTag<int32_t> d;
  const hn::Repartition<uint8_t, decltype(d)> du8;
  const hn::Repartition<int8_t, decltype(d)> di8;
  const auto a = hn::BitCast(du8, hn::Set(d, seed));
  const auto b = hn::BitCast(di8, hn::Set(d, seed + 1));
  INLAY_TWELVE_STARTS(hn::Set(d, seed + i))
  const auto add = [&](auto sum) HWY_ATTR {
    if constexpr (kInPairs) {
      // The sum is an operand, because a product of constants would be computed only once.
      const hn::Repartition<int16_t, decltype(d)> d16;
      const auto products = hn::SatWidenMulPairwiseAdd(d16, a, hn::BitCast(di8, sum));
      return hn::BitCast(d, hn::Add(products, hn::BitCast(d16, sum)));
    } else if constexpr (kMatrices) {
      return AddMatricesOfBytes(a, b, sum);
    } else {
      return AddProductsOfBytes(d, a, b, sum);
    }
  };
#define INLAY_STEP(s) s = add(s);
  INLAY_TWELVE_SUMS(INLAY_STEP)
#undef INLAY_STEP
  *out = static_cast<float>(hn::ReduceSum(d, INLAY_ADD_UP));
  return 12.0 * kOperationsPerLane * static_cast<double>(hn::Lanes(du8));
}

double F32Rounds(size_t rounds, int32_t seed, float* out) {
  const hn::ScalableTag<float> d;
  const auto a = hn::Set(d, static_cast<float>(seed) * 1e-9f);
  const auto b = hn::Set(d, static_cast<float>(seed) * 1e-3f);
  INLAY_TWELVE_STARTS(hn::Set(d, static_cast<float>(seed + i)))
#define INLAY_STEP(s) s = hn::MulAdd(a, b, s);
  INLAY_TWELVE_SUMS(INLAY_STEP)
#undef INLAY_STEP
  *out = hn::ReduceSum(d, INLAY_ADD_UP);
  return 12.0 * 2 * static_cast<double>(hn::Lanes(d));
}

double Bf16Rounds(size_t rounds, int32_t seed, float* out) {
  const hn::ScalableTag<float> d;
  const hn::Repartition<hwy::bfloat16_t, decltype(d)> d16;
  const hn::Repartition<uint16_t, decltype(d)> du16;
  // Any finite bfloat16.
  const auto a = hn::BitCast(d16, hn::Set(du16, static_cast<uint16_t>(0x3F00 + (seed & 0x7F))));
  INLAY_TWELVE_STARTS(hn::Set(d, static_cast<float>(seed + i)))
  auto rest = hn::Zero(d);
  const auto add = [&](auto sum) HWY_ATTR {
    if constexpr (kMatrices) {
      const auto words = hn::BitCast(hn::Repartition<uint32_t, decltype(d)>(), a);
      return AddMatricesOfBf16(words, words, sum);
    } else {
      return hn::ReorderWidenMulAccumulate(d, a, a, sum, rest);
    }
  };
#define INLAY_STEP(s) s = add(s);
  INLAY_TWELVE_SUMS(INLAY_STEP)
#undef INLAY_STEP
  *out = hn::ReduceSum(d, hn::Add(INLAY_ADD_UP, rest));
  return 12.0 * kOperationsPerLane * static_cast<double>(hn::Lanes(d16));
}
#undef INLAY_TWELVE_SUMS
#undef INLAY_ADD_UP
#undef INLAY_START
#undef INLAY_TWELVE_STARTS

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace inlay::INLAY_EXTENSION {
namespace {

HWY_EXPORT(Int8Rounds);
HWY_EXPORT(F32Rounds);
HWY_EXPORT(Bf16Rounds);

}  // namespace

DotProbes GetDotProbes() {
  return {.int8 = HWY_DYNAMIC_POINTER(Int8Rounds),
          .bf16 = HWY_DYNAMIC_POINTER(Bf16Rounds),
          .f32 = HWY_DYNAMIC_POINTER(F32Rounds)};
}

}  // namespace inlay::INLAY_EXTENSION
#endif  // HWY_ONCE
