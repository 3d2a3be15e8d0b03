#include "ops/matmul_input.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/matmul_input.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"
#include "ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {

// One row of activations; an odd number is followed by a zero.
void RoundOneRow(const float* x, size_t cols, Bf16* out) {
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
HWY_INLINE int32_t SumOf16(const int8_t* p) {
  const hn::CappedTag<int32_t, 4> di;
  const hn::Repartition<int8_t, decltype(di)> d8;
  const hn::Repartition<uint8_t, decltype(di)> du8;
  auto sum = hn::Zero(di);
  for (size_t i = 0; i < 16; i += hn::Lanes(d8)) {
    sum = hn::SumOfMulQuadAccumulate(di, hn::Set(du8, 1), hn::LoadU(d8, p + i), sum);
  }
  return hn::ReduceSum(di, sum);
}

// Rounds `count` <= kBatch blocks of activations, one step for all of them after the other, so that
// divisions are done by vectors and nothing waits for one block's largest value.
constexpr size_t kBatch = 16;
void QuantizeBlocks(const float* x, size_t count, QuantizedBlock* out) {
  const hn::CappedTag<float, kBatch> df;
  const hn::RebindToSigned<decltype(df)> di;
  const hn::Rebind<int8_t, decltype(df)> d8;
  const size_t lanes = hn::Lanes(df);
  HWY_ALIGN int32_t magnitudes[kBatch] = {};
  for (size_t b = 0; b < count; ++b) {
    // Magnitudes order like their bits, and NaN above all: it makes the scale NaN.
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
    // Below this the inverse might overflow; such a block counts as zeros.
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
    int32_t sums[2];
    for (size_t half = 0; half < 2; ++half) sums[half] = SumOf16(block.quants + 16 * half);
    block.scale = scales[b];
    block.sum = scales[b] * static_cast<float>(sums[0] + sums[1]);
    block.correction = QuantizedBlock::kCorrection * (sums[0] + sums[1]);
    for (size_t half = 0; half < 2; ++half) {
      block.half_sums[half] = scales[b] * static_cast<float>(sums[half]);
      block.half_corrections[half] = QuantizedBlock::kCorrection * sums[half];
    }
  }
}

// One row of activations.
void QuantizeOneRow(const float* x, size_t cols, QuantizedBlock* out) {
  const size_t blocks = cols / kQuantBlock;
  for (size_t b = 0; b < blocks; b += kBatch) {
    QuantizeBlocks(x + b * kQuantBlock, std::min(kBatch, blocks - b), out + b);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace inlay {
namespace {

HWY_EXPORT(QuantizeOneRow);
HWY_EXPORT(RoundOneRow);

}  // namespace

void MatMulInput::MakeQuantized() {
  const size_t blocks = x_.rows * x_.cols / kQuantBlock;
  if (blocks_.size() < blocks) blocks_.resize(blocks);
  quantized_ = {x_.cols, blocks_.data()};
}

void MatMulInput::MakeHalves() {
  const size_t stride = (x_.cols + 1) / 2 * 2;
  if (half_memory_.size() < x_.rows * stride) half_memory_.resize(x_.rows * stride);
  halves_ = {stride, half_memory_.data()};
}

void MatMulInput::Announce(ConstFloatRows x, std::span<const PackedMatrix* const> matrices) {
  Set(x);
  for (const PackedMatrix* w : matrices) {
    if (w->format() == PackedFormat::kBF16) {
      MakeHalves();
    } else if (IsQuantized(w->format())) {
      MakeQuantized();
    }
  }
}

void MatMulInput::RoundRows(size_t begin, size_t end) const {
  const auto quantize_row = HWY_DYNAMIC_POINTER(QuantizeOneRow);
  const auto round_row = HWY_DYNAMIC_POINTER(RoundOneRow);
  for (size_t t = begin; t < end; ++t) {
    if (quantized_.blocks != nullptr) quantize_row(x_.Row(t), x_.cols, quantized_.Row(t));
    if (halves_.data != nullptr) round_row(x_.Row(t), x_.cols, halves_.Row(t));
  }
}

QuantizedRows MatMulInput::Quantized(ThreadPool& pool) {
  if (quantized_.blocks != nullptr) return quantized_;
  MakeQuantized();
  const auto quantize_row = HWY_DYNAMIC_POINTER(QuantizeOneRow);
  ForRows(pool, x_.rows, [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t) quantize_row(x_.Row(t), x_.cols, quantized_.Row(t));
  });
  return quantized_;
}

Bf16Rows MatMulInput::Halves(ThreadPool& pool) {
  if (halves_.data != nullptr) return halves_;
  MakeHalves();
  const auto round_row = HWY_DYNAMIC_POINTER(RoundOneRow);
  ForRows(pool, x_.rows, [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t) round_row(x_.Row(t), x_.cols, halves_.Row(t));
  });
  return halves_;
}

}  // namespace inlay
#endif  // HWY_ONCE
