#include "ops/machine_limits.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/machine_limits.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {

// The sum of all words: touches every byte, and cannot be left out. The words are `streams` equal
// parts that are read side by side, 4 vectors of each in turn; `ahead` bytes before they are needed
// they are asked for (0: never). `words` is a multiple of what a round of all streams reads.
uint64_t SumWords(const uint64_t* data, size_t words, size_t streams, size_t ahead) {
  const hn::ScalableTag<uint64_t> d;
  const size_t lanes = hn::Lanes(d), step = 4 * lanes;
  constexpr size_t kLine = 64;
  const size_t each = words / streams;
  auto a = hn::Zero(d), b = a, c = a, e = a;
  const auto add = [&](const uint64_t* p) HWY_ATTR {
    a = hn::Add(a, hn::LoadU(d, p));
    b = hn::Add(b, hn::LoadU(d, p + lanes));
    c = hn::Add(c, hn::LoadU(d, p + 2 * lanes));
    e = hn::Add(e, hn::LoadU(d, p + 3 * lanes));
  };
  for (size_t i = 0; i < each; i += step) {
    for (size_t s = 0; s < streams; ++s) {
      const uint64_t* p = data + s * each + i;
      if (ahead > 0) {
        const auto* bytes = reinterpret_cast<const uint8_t*>(p) + ahead;
        for (size_t line = 0; line < step * sizeof(uint64_t); line += kLine)
          hwy::Prefetch(bytes + line);
      }
      add(p);
    }
  }
  return hn::ReduceSum(d, hn::Add(hn::Add(a, b), hn::Add(c, e)));
}

// Each loop keeps twelve sums, more than the latency times the throughput of any CPU we know, and
// returns how many operations a round of it does (a multiplication and an addition count as two).
// The sums go to `out`.
// The sums start with different values, or the compiler would see that they are all the same.
#define INLAY_START(s, n, VALUE) auto s = [&](int32_t i) HWY_ATTR { return VALUE; }(n);
#define INLAY_TWELVE_STARTS(VALUE)                                              \
  INLAY_START(s0, 0, VALUE)                                                     \
  INLAY_START(s1, 1, VALUE)                                                     \
  INLAY_START(s2, 2, VALUE)                                                     \
  INLAY_START(s3, 3, VALUE)                                                     \
  INLAY_START(s4, 4, VALUE)                                                     \
  INLAY_START(s5, 5, VALUE)                                                     \
  INLAY_START(s6, 6, VALUE) INLAY_START(s7, 7, VALUE) INLAY_START(s8, 8, VALUE) \
      INLAY_START(s9, 9, VALUE) INLAY_START(s10, 10, VALUE) INLAY_START(s11, 11, VALUE)
#define INLAY_TWELVE_SUMS(STEP)                                                                 \
  for (size_t i = 0; i < rounds; ++i) {                                                         \
    STEP(s0)                                                                                    \
    STEP(s1)                                                                                    \
    STEP(s2) STEP(s3) STEP(s4) STEP(s5) STEP(s6) STEP(s7) STEP(s8) STEP(s9) STEP(s10) STEP(s11) \
  }
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
      // Products that do not change would be computed once.
      const hn::Repartition<int16_t, decltype(d)> d16;
      const auto products = hn::SatWidenMulPairwiseAdd(d16, a, hn::BitCast(di8, sum));
      return hn::BitCast(d, hn::Add(products, hn::BitCast(d16, sum)));
    } else {
      return hn::SumOfMulQuadAccumulate(d, a, b, sum);
    }
  };
#define INLAY_STEP(s) s = add(s);
  INLAY_TWELVE_SUMS(INLAY_STEP)
#undef INLAY_STEP
  *out = static_cast<float>(hn::ReduceSum(d, INLAY_ADD_UP));
  return 12.0 * 2 * static_cast<double>(hn::Lanes(du8));
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
#define INLAY_STEP(s) s = hn::ReorderWidenMulAccumulate(d, a, a, s, rest);
  INLAY_TWELVE_SUMS(INLAY_STEP)
#undef INLAY_STEP
  *out = hn::ReduceSum(d, hn::Add(INLAY_ADD_UP, rest));
  return 12.0 * 2 * static_cast<double>(hn::Lanes(d16));
}
#undef INLAY_TWELVE_SUMS
#undef INLAY_ADD_UP
#undef INLAY_START
#undef INLAY_TWELVE_STARTS

}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace inlay {
namespace {

HWY_EXPORT(SumWords);
HWY_EXPORT(Int8Rounds);
HWY_EXPORT(F32Rounds);
HWY_EXPORT(Bf16Rounds);

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr int kRepeats = 7;

// Results go here so that no loop is left out; seeds come from here so that none is computed at
// compile time.
std::atomic<float> sink = 0;
std::atomic<int32_t> source = 3;

template <class Rounds>
double BestRate(const Rounds& rounds) {
  constexpr size_t kRounds =
      200'000;  // about a millisecond: longer than a clock's step, shorter than a time slice
  double best = 0;
  for (int i = 0; i < kRepeats; ++i) {
    float out = 0;
    const Clock::time_point start = Clock::now();
    const double operations = rounds(kRounds, source.load(), &out) * static_cast<double>(kRounds);
    best = std::max(best, operations / SecondsSince(start));
    sink = out;
  }
  return best;
}

}  // namespace

double MeasureReadBandwidth(ThreadPool& pool, size_t bytes) {
  constexpr size_t kPage = size_t{1} << 21;
  const size_t allocated = (std::max(bytes, size_t{1}) + kPage - 1) / kPage * kPage;
  const size_t words = allocated / sizeof(uint64_t);
  struct Free {
    void operator()(uint64_t* p) const { std::free(p); }
  };
  std::unique_ptr<uint64_t[], Free> data(
      static_cast<uint64_t*>(std::aligned_alloc(kPage, allocated)));
  if (data == nullptr) return 0;
  // Large pages, as packed matrices ask for: what is measured is memory, not address translation.
  madvise(data.get(), allocated, MADV_HUGEPAGE);
  constexpr size_t kGrain = (size_t{64} << 10) / sizeof(uint64_t);
  const auto fill = [&](size_t begin, size_t end) {
    std::fill(&data[begin], &data[end], uint64_t{1});
  };
  pool.Run(words, kGrain, std::cref(fill));
  // Which one is fastest differs from machine to machine.
  struct Pattern {
    size_t streams, ahead;
  };
  constexpr Pattern kPatterns[] = {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {1, 2048}, {2, 2048}, {4, 1024}};
  constexpr double kSecondsEach = 0.05;
  constexpr int kLeastPasses = 3;
  double best = 0;
  for (const Pattern& pattern : kPatterns) {
    std::atomic<uint64_t> sum;
    const auto read = [&](size_t begin, size_t end) {
      sum +=
          HWY_DYNAMIC_DISPATCH(SumWords)(&data[begin], end - begin, pattern.streams, pattern.ahead);
    };
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < kLeastPasses || SecondsSince(begin) < kSecondsEach; ++i) {
      sum = 0;
      const Clock::time_point start = Clock::now();
      pool.Run(words, kGrain, std::cref(read));
      const double seconds = SecondsSince(start);
      if (sum != words) return 0;  // all words are 1: something was left out
      best = std::max(best, static_cast<double>(allocated) / seconds);
    }
  }
  return best;
}

const char* DotName(Dot dot) {
  return dot == Dot::kInt8 ? "int8" : dot == Dot::kBF16 ? "bf16" : "f32";
}

Dot DotOf(WeightType type) {
  switch (type) {
    case WeightType::kF32:
    case WeightType::kF16:
      return Dot::kF32;
    case WeightType::kBF16:
      return Dot::kBF16;
    default:
      return Dot::kInt8;
  }
}

DotPeaks MeasureDotPeaks() {
  return {.int8 = BestRate([](size_t n, int32_t seed, float* out) {
            return HWY_DYNAMIC_DISPATCH(Int8Rounds)(n, seed, out);
          }),
          .bf16 = BestRate([](size_t n, int32_t seed, float* out) {
            return HWY_DYNAMIC_DISPATCH(Bf16Rounds)(n, seed, out);
          }),
          .f32 = BestRate([](size_t n, int32_t seed, float* out) {
            return HWY_DYNAMIC_DISPATCH(F32Rounds)(n, seed, out);
          })};
}

}  // namespace inlay
#endif  // HWY_ONCE
