// SIMD helpers that the kernels share: loads that convert to float, and functions of one vector.

// Compiled once per CPU target, hence the toggling guard.
#if defined(INLAY_OPS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INLAY_OPS_SIMD_INL_H_
#undef INLAY_OPS_SIMD_INL_H_
#else
#define INLAY_OPS_SIMD_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

namespace {

// Every element of a result is computed by vector instructions, tails too (with partial loads): a
// value must not depend on whether its position fell into a whole vector or into the tail.

// f16 (IEEE binary16) to float, exact for every input.
template <class DF, class V16>
HWY_INLINE hn::Vec<DF> FloatFromF16(DF df, V16 bits16) {
#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX2
  // SSE targets have no conversion instruction. The exponent field moves by 127 - 15; multiplying
  // by 2^112 does that for subnormals too. Infinities and NaNs get the exponent of all ones.
  const hn::RebindToUnsigned<DF> du;
  const auto bits = hn::PromoteTo(du, bits16);
  const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000u)));
  const auto magnitude = hn::And(bits, hn::Set(du, 0x7FFFu));
  const auto scaled = hn::Mul(hn::BitCast(df, hn::ShiftLeft<13>(magnitude)), hn::Set(df, 0x1p112f));
  const auto special =
      hn::IfThenElseZero(hn::Ge(magnitude, hn::Set(du, 0x7C00u)), hn::Set(du, 0x7F800000u));
  return hn::BitCast(df, hn::Or(hn::Or(hn::BitCast(du, scaled), special), sign));
#else
  const hn::Rebind<hwy::float16_t, DF> d16;
  return hn::PromoteTo(df, hn::BitCast(d16, bits16));
#endif
}

// bfloat16 is the upper 16 bits of a float.
template <class DF, class V16>
HWY_INLINE hn::Vec<DF> FloatFromBf16(DF df, V16 bits16) {
  const hn::RebindToUnsigned<DF> du;
  return hn::BitCast(df, hn::ShiftLeft<16>(hn::PromoteTo(du, bits16)));
}

// The bits of the nearest f16, ties to even.
template <class DF>
HWY_INLINE hn::Vec<hn::Rebind<uint16_t, DF>> F16FromFloat(DF df, hn::Vec<DF> v) {
  const hn::Rebind<uint16_t, DF> du16;
  const hn::Rebind<hwy::float16_t, DF> d16;
  (void)df;
  return hn::BitCast(du16, hn::DemoteTo(d16, v));
}

// The bits of the nearest bfloat16, ties to even; NaN stays NaN. In integers, because conversion
// instructions may flush subnormals.
template <class DF>
HWY_INLINE hn::Vec<hn::Rebind<uint16_t, DF>> Bf16FromFloat(DF df, hn::Vec<DF> v) {
  const hn::RebindToUnsigned<DF> du;
  const hn::Rebind<uint16_t, DF> du16;
  const auto bits = hn::BitCast(du, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFFu)));
  const auto quiet = hn::Or(bits, hn::Set(du, 0x400000u));
  const auto is_nan = hn::RebindMask(du, hn::IsNaN(v));
  (void)df;
  return hn::TruncateTo(du16, hn::ShiftRight<16>(hn::IfThenElse(is_nan, quiet, rounded)));
}

// Lanes(df) elements from p, as float.
template <class DF>
HWY_INLINE hn::Vec<DF> LoadFloat(DF df, const float* p) {
  return hn::LoadU(df, p);
}
template <class DF>
HWY_INLINE hn::Vec<DF> LoadFloat(DF df, const hwy::float16_t* p) {
  const hn::Rebind<uint16_t, DF> du16;
  return FloatFromF16(df, hn::LoadU(du16, reinterpret_cast<const uint16_t*>(p)));
}
template <class DF>
HWY_INLINE hn::Vec<DF> LoadFloat(DF df, const hwy::bfloat16_t* p) {
  const hn::Rebind<uint16_t, DF> du16;
  return FloatFromBf16(df, hn::LoadU(du16, reinterpret_cast<const uint16_t*>(p)));
}
template <class DF>
HWY_INLINE hn::Vec<DF> LoadFloat(DF df, const int8_t* p) {
  const hn::Rebind<int8_t, DF> d8;
  const hn::Rebind<int32_t, DF> d32;
  return hn::ConvertTo(df, hn::PromoteTo(d32, hn::LoadU(d8, p)));
}

// The first n < Lanes(df) of these elements, then zeros; nothing beyond them is read.
template <class DF>
HWY_INLINE hn::Vec<DF> LoadFloatN(DF df, const float* p, size_t n) {
  return hn::LoadN(df, p, n);
}
template <class DF>
HWY_INLINE hn::Vec<DF> LoadFloatN(DF df, const hwy::float16_t* p, size_t n) {
  const hn::Rebind<uint16_t, DF> du16;
  return FloatFromF16(df, hn::LoadN(du16, reinterpret_cast<const uint16_t*>(p), n));
}
template <class DF>
HWY_INLINE hn::Vec<DF> LoadFloatN(DF df, const hwy::bfloat16_t* p, size_t n) {
  const hn::Rebind<uint16_t, DF> du16;
  return FloatFromBf16(df, hn::LoadN(du16, reinterpret_cast<const uint16_t*>(p), n));
}
template <class DF>
HWY_INLINE hn::Vec<DF> LoadFloatN(DF df, const int8_t* p, size_t n) {
  const hn::Rebind<int8_t, DF> d8;
  const hn::Rebind<int32_t, DF> d32;
  return hn::ConvertTo(df, hn::PromoteTo(d32, hn::LoadN(d8, p, n)));
}

// out[i] = from[i] as float, for n elements.
template <class T>
HWY_INLINE void ConvertRow(const T* from, size_t n, float* out) {
  const hn::ScalableTag<float> df;
  const size_t lanes = hn::Lanes(df);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(LoadFloat(df, from + i), df, out + i);
  if (i < n) hn::StoreN(LoadFloatN(df, from + i, n - i), df, out + i, n - i);
}

// e^x, infinite above 104 where hn::Exp is not defined; NaN of NaN, which hn::Exp makes 0 and
// hn::Min, on some CPUs, 104.
template <class DF, class V = hn::Vec<DF>>
HWY_INLINE V ExpOf(DF df, V x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(df, hn::Min(x, hn::Set(df, 104.0f))));
}

// e^x of one number, with the same bits as in any lane of a vector.
HWY_INLINE float ExpOf1(float x) {
  const hn::ScalableTag<float> df;
  return hn::GetLane(ExpOf(df, hn::Set(df, x)));
}

// x / (1 + e^-k x), for k = 1 the SiLU.
template <class DF, class V = hn::Vec<DF>>
HWY_INLINE V Swish(DF df, V x, V kx) {
  return hn::Div(x, hn::Add(hn::Set(df, 1.0f), ExpOf(df, hn::Neg(kx))));
}

// log(1 + e^x) as max(x, 0) + log1p(e^-|x|), which neither overflows nor cancels. NaN stays NaN.
template <class DF, class V = hn::Vec<DF>>
HWY_INLINE V Softplus(DF df, V x) {
  const V zero = hn::Zero(df);
  const V positive = hn::IfThenElse(hn::Lt(x, zero), zero, x);
  return hn::Add(positive, hn::Log1p(df, hn::Exp(df, hn::Neg(hn::Abs(x)))));
}

// cap * tanh(x / cap). NaN stays NaN.
template <class DF, class V = hn::Vec<DF>>
HWY_INLINE V SoftCapOf(DF df, V x, float cap) {
  // tanh is 1 in float from 9.01 on; the clamp keeps hn::Tanh's exponential finite.
  const V ratio = hn::Clamp(hn::Div(x, hn::Set(df, cap)), hn::Set(df, -15.0f), hn::Set(df, 15.0f));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Mul(hn::Set(df, cap), hn::Tanh(df, ratio)));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#endif  // INLAY_OPS_SIMD_INL_H_
