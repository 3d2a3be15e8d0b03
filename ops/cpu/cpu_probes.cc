#include "ops/cpu/cpu_probes.h"

// Every CPU target that some kernel is compiled for.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS INLAY_UNUSED_TARGETS

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/cpu_probes.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {
namespace {

int64_t ThisTarget() { return HWY_TARGET; }

size_t VectorBytes() { return hn::Lanes(hn::ScalableTag<uint8_t>()); }

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

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace inlay {
namespace {

HWY_EXPORT(ThisTarget);
HWY_EXPORT(VectorBytes);
HWY_EXPORT(SumWords);

}  // namespace

int64_t CompiledTargetBits() { return HWY_TARGETS; }

int64_t ProbeTargetBit() { return HWY_DYNAMIC_DISPATCH(ThisTarget)(); }

size_t ProbeVectorBytes() { return HWY_DYNAMIC_DISPATCH(VectorBytes)(); }

uint64_t ProbeSumOfWords(const uint64_t* data, size_t words, size_t streams, size_t ahead) {
  return HWY_DYNAMIC_DISPATCH(SumWords)(data, words, streams, ahead);
}

}  // namespace inlay
#endif  // HWY_ONCE
