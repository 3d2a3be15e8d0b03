// Adds an extension's instructions to the CPU target that is being compiled; see ops/extension.h.
// Included after all headers of Highway, whose functions keep the target's own instructions.

// Compiled once per CPU target, hence the toggling guard.
#if defined(INLAY_OPS_EXTENSION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INLAY_OPS_EXTENSION_INL_H_
#undef INLAY_OPS_EXTENSION_INL_H_
#else
#define INLAY_OPS_EXTENSION_INL_H_
#endif

#include "hwy/highway.h"
#include "ops/extension.h"

// INLAY_IS_COMPILED: whether kernels are to be compiled for this target. In an extension's source
// they are not for the one that Highway insists on, which nobody calls there.
#undef INLAY_IS_COMPILED
#if !defined(INLAY_EXTENSION_TARGETS)
#define INLAY_IS_COMPILED 1
#elif HWY_TARGET & INLAY_EXTENSION_TARGETS
#define INLAY_IS_COMPILED 1
#else
#define INLAY_IS_COMPILED 0
#endif

// What follows is compiled with these instructions as well.
#if defined(INLAY_VNNI) && HWY_TARGET == HWY_AVX3
#undef HWY_TARGET_STR
#define HWY_TARGET_STR HWY_TARGET_STR_AVX3 ",avx512vnni"
#elif defined(INLAY_VNNI) && HWY_TARGET == HWY_AVX2
#undef HWY_TARGET_STR
#define HWY_TARGET_STR HWY_TARGET_STR_AVX2 ",avxvnni"
#endif

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

namespace {

// x86 CPUs without VNNI multiply bytes two at a time and add these products in 16 bits, which
// saturate.
#if defined(INLAY_VNNI)
constexpr bool kInPairs = false;
#else
constexpr bool kInPairs = HWY_ARCH_X86 && HWY_TARGET <= HWY_SSE4 && HWY_TARGET > HWY_AVX3_DL;
#endif

// sum[i] + the sum over j < 4 of w[4 i + j] * x[4 i + j], exact but for the wraparound of 32 bits.
template <class DI32, class VI32 = hn::Vec<DI32>>
HWY_INLINE VI32 AddProductsOfBytes(DI32 d, hn::Vec<hn::Repartition<uint8_t, DI32>> w,
                                   hn::Vec<hn::Repartition<int8_t, DI32>> x, VI32 sum) {
#if defined(INLAY_VNNI) && HWY_TARGET == HWY_AVX3
  static_assert(hn::MaxLanes(d) == 16);
  return VI32{_mm512_dpbusd_epi32(sum.raw, w.raw, x.raw)};
#elif defined(INLAY_VNNI) && HWY_TARGET == HWY_AVX2
  static_assert(hn::MaxLanes(d) == 8);
  return VI32{_mm256_dpbusd_avx_epi32(sum.raw, w.raw, x.raw)};
#else
  return hn::SumOfMulQuadAccumulate(d, w, x, sum);
#endif
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#endif  // toggling guard
