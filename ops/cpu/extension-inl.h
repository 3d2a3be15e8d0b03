// Adds an extension's instructions to the CPU target that is being compiled; see
// ops/cpu/extension.h. Included after all headers of Highway, whose functions keep the target's own
// instructions.

// Compiled once per CPU target, hence the toggling guard.
#if defined(INLAY_OPS_CPU_EXTENSION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INLAY_OPS_CPU_EXTENSION_INL_H_
#undef INLAY_OPS_CPU_EXTENSION_INL_H_
#else
#define INLAY_OPS_CPU_EXTENSION_INL_H_
#endif

#include "hwy/highway.h"
#include "ops/cpu/extension.h"

// INLAY_IS_COMPILED: whether kernels are to be compiled for this target. An extension's source
// has none for the baseline target, which Highway always compiles and nobody calls there.
#undef INLAY_IS_COMPILED
#if !defined(INLAY_EXTENSION_TARGETS)
#define INLAY_IS_COMPILED 1
#elif HWY_TARGET & INLAY_EXTENSION_TARGETS
#define INLAY_IS_COMPILED 1
#else
#define INLAY_IS_COMPILED 0
#endif

// Whether kernels of this target use an extension of Arm's.
#undef INLAY_USES_DOTPROD
#undef INLAY_USES_I8MM
#if defined(INLAY_DOTPROD) && INLAY_IS_COMPILED
#define INLAY_USES_DOTPROD 1
#else
#define INLAY_USES_DOTPROD 0
#endif
#if defined(INLAY_I8MM) && INLAY_IS_COMPILED
#define INLAY_USES_I8MM 1
#else
#define INLAY_USES_I8MM 0
#endif

// The code that follows is compiled with these instructions as well.
#undef INLAY_ARM_STR
#if HWY_COMPILER_GCC_ACTUAL
#define INLAY_ARM_STR "arch=armv8.2-a" HWY_TARGET_STR_NEON
#else
#define INLAY_ARM_STR HWY_TARGET_STR_NEON
#endif
#if defined(INLAY_VNNI) && HWY_TARGET == HWY_AVX3
#undef HWY_TARGET_STR
#define HWY_TARGET_STR HWY_TARGET_STR_AVX3 ",avx512vnni"
#elif defined(INLAY_VNNI) && HWY_TARGET == HWY_AVX2
#undef HWY_TARGET_STR
#define HWY_TARGET_STR HWY_TARGET_STR_AVX2 ",avxvnni"
#elif INLAY_USES_DOTPROD && !INLAY_HAS_DOTPROD
#undef HWY_TARGET_STR
#define HWY_TARGET_STR INLAY_ARM_STR "+dotprod"
#elif INLAY_USES_I8MM && !INLAY_HAS_I8MM
#undef HWY_TARGET_STR
#define HWY_TARGET_STR INLAY_ARM_STR "+dotprod+i8mm+bf16"
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
// Arm's DotProd multiplies signed bytes by signed ones: weights that use all 8 bits are
// converted to signed first.
constexpr bool kSignedBytes = INLAY_USES_DOTPROD;
// Arm's instructions read the four activations from a lane of a vector: no broadcast is needed.
constexpr bool kByLanes = INLAY_USES_DOTPROD || INLAY_USES_I8MM;
// Arm's I8MM and BF16 also multiply small matrices: two rows by two tokens at once.
constexpr bool kMatrices = INLAY_USES_I8MM;
// Whether two products of bfloat16 are one instruction.
constexpr bool kDotBf16 = HWY_NATIVE_DOT_BF16 || INLAY_USES_I8MM;

// sum[i] + the sum over j < 4 of w[4 i + j] * x[4 i + j], exact but for the wraparound of 32 bits.
// Where kSignedBytes, the bytes of w are signed.
template <class DI32, class VI32 = hn::Vec<DI32>>
HWY_INLINE VI32 AddProductsOfBytes(DI32 d, hn::Vec<hn::Repartition<uint8_t, DI32>> w,
                                   hn::Vec<hn::Repartition<int8_t, DI32>> x, VI32 sum) {
#if defined(INLAY_VNNI) && HWY_TARGET == HWY_AVX3
  static_assert(hn::MaxLanes(d) == 16);
  return VI32{_mm512_dpbusd_epi32(sum.raw, w.raw, x.raw)};
#elif defined(INLAY_VNNI) && HWY_TARGET == HWY_AVX2
  static_assert(hn::MaxLanes(d) == 8);
  return VI32{_mm256_dpbusd_avx_epi32(sum.raw, w.raw, x.raw)};
#elif INLAY_USES_DOTPROD
  static_assert(hn::MaxLanes(d) == 4);
  return VI32{vdotq_s32(sum.raw, vreinterpretq_s8_u8(w.raw), x.raw)};
#elif INLAY_USES_I8MM
  static_assert(hn::MaxLanes(d) == 4);
  return VI32{vusdotq_s32(sum.raw, w.raw, x.raw)};
#else
  return hn::SumOfMulQuadAccumulate(d, w, x, sum);
#endif
}

// sum[i] + w[2 i] * x[2 i] + w[2 i + 1] * x[2 i + 1], for pairs of bfloat16 that are words, in the
// order and with the rounding of the CPU's instruction.
template <class DF, class VF = hn::Vec<DF>, class VU32 = hn::Vec<hn::RebindToUnsigned<DF>>>
HWY_INLINE VF AddProductsOfBf16(DF df, VU32 w, VU32 x, VF sum) {
#if INLAY_USES_I8MM
  static_assert(hn::MaxLanes(df) == 4);
  return VF{vbfdotq_f32(sum.raw, vreinterpretq_bf16_u32(w.raw), vreinterpretq_bf16_u32(x.raw))};
#else
  const hn::Repartition<hwy::bfloat16_t, DF> d16;
  auto unused = hn::Zero(df);
  return hn::ReorderWidenMulAccumulate(df, hn::BitCast(d16, w), hn::BitCast(d16, x), sum, unused);
#endif
}

#if INLAY_USES_DOTPROD || INLAY_USES_I8MM
// AddProductsOfBytes with four bytes of x for all i: those from 4 * kLane on.
template <int kLane>
HWY_INLINE hn::Vec128<int32_t> AddProductsOfLane(hn::Vec128<uint8_t> w, hn::Vec64<int8_t> x,
                                                 hn::Vec128<int32_t> sum) {
#if INLAY_USES_I8MM
  return hn::Vec128<int32_t>{vusdotq_lane_s32(sum.raw, w.raw, x.raw, kLane)};
#else
  return hn::Vec128<int32_t>{vdotq_lane_s32(sum.raw, vreinterpretq_s8_u8(w.raw), x.raw, kLane)};
#endif
}
#endif

#if INLAY_USES_I8MM
// Multiplies two rows by two tokens. Each 64 bits of w or x hold eight columns of one of them;
// sum[2 r + t] is row r's product with token t.
HWY_INLINE hn::Vec128<int32_t> AddMatricesOfBytes(hn::Vec128<uint8_t> w, hn::Vec128<int8_t> x,
                                                  hn::Vec128<int32_t> sum) {
  return hn::Vec128<int32_t>{vusmmlaq_s32(sum.raw, w.raw, x.raw)};
}

// The same for four columns: their two pairs are added as AddProductsOfBf16 adds them, in order.
HWY_INLINE hn::Vec128<float> AddMatricesOfBf16(hn::Vec128<uint32_t> w, hn::Vec128<uint32_t> x,
                                               hn::Vec128<float> sum) {
  return hn::Vec128<float>{
      vbfmmlaq_f32(sum.raw, vreinterpretq_bf16_u32(w.raw), vreinterpretq_bf16_u32(x.raw))};
}
#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#endif  // toggling guard
