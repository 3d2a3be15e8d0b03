#include "ops/row_kernels.h"

// Sums of bytes use the instructions for products of bytes, which AVX3_DL adds.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (INLAY_UNUSED_TARGETS | HWY_AVX3_ZEN4)

#include <algorithm>
#include <cassert>
#include <iterator>
#include <limits>

#include "ops/portable_math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/row_kernels.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"
#include "ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {
namespace {

void RoundRow(const float* x, size_t cols, uint16_t* out) {
  const hn::ScalableTag<float> df;
  const hn::Rebind<uint16_t, decltype(df)> d16;
  const size_t lanes = hn::Lanes(df);
  size_t i = 0;
  for (; i + lanes <= cols; i += lanes) {
    hn::StoreU(Bf16FromFloat(df, hn::LoadU(df, x + i)), d16, out + i);
  }
  if (i < cols)
    hn::StoreN(Bf16FromFloat(df, hn::LoadN(df, x + i, cols - i)), d16, out + i, cols - i);
  if (cols % 2 != 0) out[cols] = 0;
}

// The sum of 16 signed bytes.
HWY_INLINE int32_t VectorSumOf16(const int8_t* p) {
  const hn::CappedTag<int32_t, 4> di;
  const hn::Repartition<int8_t, decltype(di)> d8;
  const hn::Repartition<uint8_t, decltype(di)> du8;
  auto sum = hn::Zero(di);
  for (size_t i = 0; i < 16; i += hn::Lanes(d8)) {
    sum = hn::SumOfMulQuadAccumulate(di, hn::Set(du8, 1), hn::LoadU(d8, p + i), sum);
  }
  return hn::ReduceSum(di, sum);
}

// Rounds `count` <= kBatch quantization blocks, each step for all of them before the next one, so
// that divisions are vectorised and no step waits for the largest value of a single block.
constexpr size_t kBatch = 16;
void QuantizeBlocks(const float* x, size_t count, QuantizedBlock* out) {
  const hn::CappedTag<float, kBatch> df;
  const hn::RebindToSigned<decltype(df)> di;
  const hn::Rebind<int8_t, decltype(df)> d8;
  const size_t lanes = hn::Lanes(df);
  HWY_ALIGN int32_t magnitudes[kBatch] = {};
  for (size_t b = 0; b < count; ++b) {
    // Magnitudes compare like their bits as integers, with NaN above all: it makes the scale NaN.
    auto largest = hn::Zero(di);
    for (size_t i = 0; i < kQuantBlock; i += lanes) {
      const auto v = hn::Abs(hn::LoadU(df, x + b * kQuantBlock + i));
      largest = hn::Max(largest, hn::BitCast(di, v));
    }
    magnitudes[b] = hn::ReduceMax(di, largest);
  }
  HWY_ALIGN float scales[kBatch];
  HWY_ALIGN float inverses[kBatch];
  for (size_t b = 0; b < kBatch; b += lanes) {
    const auto magnitude = hn::BitCast(df, hn::Load(di, magnitudes + b));
    const auto most = hn::Set(df, 127.0f);
    hn::Store(hn::Div(magnitude, most), df, scales + b);
    // Below this the inverse might overflow; the quants of such a block are zeros.
    const auto tiny = hn::Lt(magnitude, hn::Set(df, 1e-30f));
    hn::Store(hn::IfThenZeroElse(tiny, hn::Div(most, magnitude)), df, inverses + b);
  }
  for (size_t b = 0; b < count; ++b) {
    const auto inverse = hn::Set(df, inverses[b]);
    for (size_t i = 0; i < kQuantBlock; i += lanes) {
      const auto v = hn::Mul(hn::LoadU(df, x + b * kQuantBlock + i), inverse);
      hn::StoreU(hn::DemoteTo(d8, hn::NearestInt(v)), d8, out[b].quants + i);
    }
  }
  for (size_t b = 0; b < count; ++b) {
    QuantizedBlock& block = out[b];
    block.scale = scales[b];
    SetSums(block, VectorSumOf16(block.quants), VectorSumOf16(block.quants + 16));
  }
}

void QuantizeRow(const float* x, size_t cols, QuantizedBlock* out) {
  const size_t blocks = cols / kQuantBlock;
  for (size_t b = 0; b < blocks; b += kBatch) {
    QuantizeBlocks(x + b * kQuantBlock, std::min(kBatch, blocks - b), out + b);
  }
}

void ConvertFrom(WeightType type, const void* from, size_t n, float* out) {
  switch (type) {
    case WeightType::kF16:
      return ConvertRow(static_cast<const hwy::float16_t*>(from), n, out);
    case WeightType::kBF16:
      return ConvertRow(static_cast<const hwy::bfloat16_t*>(from), n, out);
    default:
      return ConvertRow(static_cast<const float*>(from), n, out);
  }
}

float MaxOf(const float* x, size_t n) {
  const hn::ScalableTag<float> df;
  const size_t lanes = hn::Lanes(df);
  const auto lowest = hn::Set(df, -std::numeric_limits<float>::infinity());
  auto largest = lowest;
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::LoadU(df, x + i);
    largest = hn::IfThenElse(hn::Gt(v, largest), v, largest);
  }
  if (i < n) {
    const auto v = hn::LoadNOr(lowest, df, x + i, n - i);
    largest = hn::IfThenElse(hn::Gt(v, largest), v, largest);
  }
  return hn::ReduceMax(df, largest);
}

double SumOfExp(const float* x, size_t n, float largest) {
  const hn::ScalableTag<double> dd;
  const hn::Rebind<float, decltype(dd)> df;
  const size_t lanes = hn::Lanes(dd);
  const auto shift = hn::Set(dd, static_cast<double>(largest));
  auto sum = hn::Zero(dd);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::PromoteTo(dd, hn::LoadU(df, x + i));
    sum = hn::Add(sum, hn::Exp(dd, hn::Sub(v, shift)));
  }
  if (i < n) {
    const auto v = hn::PromoteTo(dd, hn::LoadN(df, x + i, n - i));
    const auto e = hn::Exp(dd, hn::Sub(v, shift));
    sum = hn::Add(sum, hn::IfThenElseZero(hn::FirstN(dd, n - i), e));
  }
  return hn::ReduceSum(dd, sum);
}

// The operations of PortableExp in its order, none of them fused. The power of two is applied in
// other factors than there, which no result depends on as none is subnormal.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpOfLanes(D dd, V x) {
  using namespace portable_exp;
  const hn::RebindToSigned<D> di;
  const auto shift = hn::Set(dd, kShift);
  const auto largest = hn::Set(dd, kLargest), smallest = hn::Set(dd, kSmallest);
  const auto within = hn::Max(smallest, hn::Min(x, largest));
  const auto shifted = hn::Add(hn::Mul(within, hn::Set(dd, kLog2E)), shift);
  const auto n = hn::Sub(shifted, shift);
  const auto high = hn::Sub(within, hn::Mul(n, hn::Set(dd, kLn2High)));
  const auto low = hn::Mul(n, hn::Set(dd, kLn2Low));
  const auto r = hn::Sub(high, low);
  constexpr size_t kTerms = std::size(kSeries);
  auto sum = hn::Set(dd, kSeries[kTerms - 1]);
  for (size_t i = kTerms - 1; i-- > 0;) sum = hn::Add(hn::Mul(sum, r), hn::Set(dd, kSeries[i]));
  const auto rest = hn::Add(hn::Sub(hn::Sub(high, r), low), hn::Mul(hn::Mul(r, r), sum));
  const auto e = hn::Add(hn::Set(dd, 1.0), hn::Add(r, rest));
  // The lowest bits of `shifted` are those of the integer n.
  const auto exponent = hn::Sub(hn::BitCast(di, shifted), hn::BitCast(di, shift));
  const auto half = hn::ShiftRight<1>(exponent);
  const auto power = [&](auto k) {
    return hn::BitCast(dd, hn::ShiftLeft<52>(hn::Add(k, hn::Set(di, 1023))));
  };
  const auto result = hn::Mul(hn::Mul(e, power(half)), power(hn::Sub(exponent, half)));
  const auto infinity = hn::Set(dd, std::numeric_limits<double>::infinity());
  const auto finite = hn::IfThenZeroElse(hn::Lt(x, smallest), result);
  return hn::IfThenElse(hn::IsNaN(x), x, hn::IfThenElse(hn::Gt(x, largest), infinity, finite));
}

void ExpInPlace(double* x, size_t n) {
  const hn::ScalableTag<double> dd;
  const size_t lanes = hn::Lanes(dd);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(ExpOfLanes(dd, hn::LoadU(dd, x + i)), dd, x + i);
  if (i < n) hn::StoreN(ExpOfLanes(dd, hn::LoadN(dd, x + i, n - i)), dd, x + i, n - i);
}

bool AllFiniteOf(const float* x, size_t n) {
  const hn::ScalableTag<float> df;
  const size_t lanes = hn::Lanes(df);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    if (!hn::AllTrue(df, hn::IsFinite(hn::LoadU(df, x + i)))) return false;
  }
  return i == n || hn::AllTrue(df, hn::IsFinite(hn::LoadN(df, x + i, n - i)));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace inlay {
namespace {

HWY_EXPORT(RoundRow);
HWY_EXPORT(QuantizeRow);
HWY_EXPORT(ConvertFrom);
HWY_EXPORT(MaxOf);
HWY_EXPORT(SumOfExp);
HWY_EXPORT(ExpInPlace);
HWY_EXPORT(AllFiniteOf);

}  // namespace

void RoundRowToBf16(const float* x, size_t cols, uint16_t* out) {
  HWY_DYNAMIC_DISPATCH(RoundRow)(x, cols, out);
}

void RoundRowToBlocks(const float* x, size_t cols, QuantizedBlock* out) {
  HWY_DYNAMIC_DISPATCH(QuantizeRow)(x, cols, out);
}

void ConvertRowToFloat(WeightType type, const void* from, size_t n, float* out) {
  assert(type == WeightType::kF32 || type == WeightType::kF16 || type == WeightType::kBF16);
  HWY_DYNAMIC_DISPATCH(ConvertFrom)(type, from, n, out);
}

float LargestOfRow(const float* x, size_t n) { return HWY_DYNAMIC_DISPATCH(MaxOf)(x, n); }

double SumOfRowExp(const float* x, size_t n, float largest) {
  return HWY_DYNAMIC_DISPATCH(SumOfExp)(x, n, largest);
}

void ExpOfRow(double* x, size_t n) { HWY_DYNAMIC_DISPATCH(ExpInPlace)(x, n); }

bool AllFinite(const float* x, size_t n) { return HWY_DYNAMIC_DISPATCH(AllFiniteOf)(x, n); }

}  // namespace inlay
#endif  // HWY_ONCE
