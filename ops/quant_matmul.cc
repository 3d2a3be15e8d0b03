#include "ops/quant_matmul.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/quant_matmul.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"
#include "ops/quant_unpack.h"

#ifndef INLAY_OPS_QUANT_MATMUL_CC_ONCE
#define INLAY_OPS_QUANT_MATMUL_CC_ONCE
namespace inlay {
namespace {

constexpr size_t kBlock = 32;     // activations that share a scale
constexpr size_t kSumGroup = 16;  // activations that share a sum: the smallest group of weights

// Rows of activations in 8 bits.
struct QuantizedRows {
  size_t cols;
  int8_t* quants;  // [rows, cols]
  float* scales;   // [rows, cols / kBlock]
  int32_t* sums;   // [rows, cols / kSumGroup], of the quants

  QuantizedRows Row(size_t r) const {
    return {cols, quants + r * cols, scales + r * (cols / kBlock), sums + r * (cols / kSumGroup)};
  }
};

// Weight rows that are unpacked and multiplied together.
constexpr size_t kRows = 4;

struct UnpackedRows {
  int8_t* quants;  // [kRows, cols]
  float* scales;   // [groups, kRows]
  float* offsets;  // [groups, kRows]
};

}  // namespace
}  // namespace inlay
#endif  // INLAY_OPS_QUANT_MATMUL_CC_ONCE

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// One row of activations.
void QuantizeActivations(const float* x, QuantizedRows out) {
  const hn::CappedTag<float, kSumGroup> df;
  const hn::RebindToSigned<decltype(df)> di;
  const hn::Rebind<int8_t, decltype(df)> d8;
  const size_t lanes = hn::Lanes(df);
  for (size_t block = 0; block < out.cols; block += kBlock) {
    // Magnitudes order like their bits, and NaN above all: it makes the scale NaN.
    auto largest = hn::Zero(di);
    for (size_t i = 0; i < kBlock; i += lanes) {
      const auto magnitude = hn::Abs(hn::LoadU(df, x + block + i));
      largest = hn::Max(largest, hn::BitCast(di, magnitude));
    }
    const float magnitude = std::bit_cast<float>(hn::ReduceMax(di, largest));
    // Below this the inverse might overflow; such a block counts as zeros.
    const float inverse = magnitude < 1e-30f ? 0.0f : 127.0f / magnitude;
    out.scales[block / kBlock] = magnitude / 127.0f;
    for (size_t group = block; group < block + kBlock; group += kSumGroup) {
      auto sum = hn::Zero(di);
      for (size_t i = group; i < group + kSumGroup; i += lanes) {
        const auto q = hn::NearestInt(hn::Mul(hn::LoadU(df, x + i), hn::Set(df, inverse)));
        hn::StoreU(hn::DemoteTo(d8, q), d8, out.quants + i);
        sum = hn::Add(sum, q);
      }
      out.sums[group / kSumGroup] = hn::ReduceSum(di, sum);
    }
  }
}

// The sum of products of kGroup bytes, exact.
template <size_t kGroup>
HWY_INLINE int32_t DotBytes(const int8_t* HWY_RESTRICT a, const int8_t* HWY_RESTRICT b) {
  const hn::CappedTag<int8_t, kGroup> d8;
  const hn::Repartition<int32_t, decltype(d8)> d32;
  auto sum = hn::Zero(d32);
  for (size_t i = 0; i < kGroup; i += hn::Lanes(d8)) {
    sum = hn::SumOfMulQuadAccumulate(d32, hn::LoadU(d8, a + i), hn::LoadU(d8, b + i), sum);
  }
  return hn::ReduceSum(d32, sum);
}

// y[r] = w_r . x for kRows weight rows.
template <size_t kGroup, bool kOffsets>
HWY_NOINLINE void MultiplyRow(UnpackedRows w, QuantizedRows x, float* y) {
  const hn::FixedTag<float, kRows> df;
  const hn::RebindToSigned<decltype(df)> di;
  static_assert(kBlock % kGroup == 0 && kGroup % kSumGroup == 0);
  HWY_ALIGN int32_t dots[kRows];
  auto total = hn::Zero(df);
  for (size_t group = 0; group < x.cols / kGroup; ++group) {
    const size_t first = group * kGroup;
    for (size_t r = 0; r < kRows; ++r) {
      dots[r] = DotBytes<kGroup>(w.quants + r * x.cols + first, x.quants + first);
    }
    const auto scale = hn::Set(df, x.scales[first / kBlock]);
    const auto scales = hn::Mul(hn::LoadU(df, w.scales + group * kRows), scale);
    total = hn::MulAdd(hn::ConvertTo(df, hn::Load(di, dots)), scales, total);
    if constexpr (kOffsets) {
      int32_t sum = 0;
      for (size_t i = 0; i < kGroup / kSumGroup; ++i) sum += x.sums[first / kSumGroup + i];
      const auto offsets = hn::Mul(hn::LoadU(df, w.offsets + group * kRows), scale);
      total = hn::MulAdd(hn::Set(df, static_cast<float>(sum)), offsets, total);
    }
  }
  hn::StoreU(total, df, y);
}

// Output rows [begin, end) of all tokens.
void MultiplyRange(const WeightMatrix& w, QuantizedRows x, FloatRows y, size_t begin, size_t end) {
  const UnpackedShape shape = GetUnpackedShape(w.type);
  const auto multiply = shape.group == 32
                            ? (shape.has_offsets ? MultiplyRow<32, true> : MultiplyRow<32, false>)
                            : (shape.has_offsets ? MultiplyRow<16, true> : MultiplyRow<16, false>);
  thread_local std::vector<int8_t> quants;
  thread_local std::vector<float> scales;
  const size_t floats = w.cols / shape.group * kRows;
  if (quants.size() < kRows * w.cols) quants.resize(kRows * w.cols);
  if (scales.size() < 2 * floats) scales.resize(2 * floats);
  const UnpackedRows unpacked = {quants.data(), scales.data(), scales.data() + floats};
  for (size_t r = begin; r < end; r += kRows) {
    const size_t rows = std::min(kRows, end - r);
    for (size_t i = 0; i < kRows; ++i) {
      // Rows that do not fill the tile are repeated, and their results dropped.
      UnpackRow(w.type, w.RowData(r + std::min(i, rows - 1)), w.cols, kRows,
                unpacked.quants + i * w.cols, unpacked.scales + i, unpacked.offsets + i);
    }
    for (size_t t = 0; t < y.rows; ++t) {
      float results[kRows];
      multiply(unpacked, x.Row(t), results);
      std::copy_n(results, rows, y.Row(t) + r);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace inlay {
namespace {

HWY_EXPORT(QuantizeActivations);
HWY_EXPORT(MultiplyRange);

// Threads take whole multiples of this many output rows: a cache line of floats.
constexpr size_t kRowGrain = 16;

// Memory that the calling thread keeps from call to call.
QuantizedRows Scratch(size_t rows, size_t cols) {
  thread_local std::vector<int8_t> quants;
  thread_local std::vector<float> scales;
  thread_local std::vector<int32_t> sums;
  if (quants.size() < rows * cols) quants.resize(rows * cols);
  if (scales.size() < rows * (cols / kBlock)) scales.resize(rows * (cols / kBlock));
  if (sums.size() < rows * (cols / kSumGroup)) sums.resize(rows * (cols / kSumGroup));
  return {cols, quants.data(), scales.data(), sums.data()};
}

}  // namespace

void QuantizedMatMul(const WeightMatrix& w, ConstFloatRows x, FloatRows y, ThreadPool& pool) {
  const QuantizedRows quantized = Scratch(x.rows, x.cols);
  const auto quantize = [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t) {
      HWY_DYNAMIC_DISPATCH(QuantizeActivations)(x.Row(t), quantized.Row(t));
    }
  };
  pool.Run(x.rows, 1, std::cref(quantize));
  const auto multiply = [&](size_t begin, size_t end) {
    HWY_DYNAMIC_DISPATCH(MultiplyRange)(w, quantized, y, begin, end);
  };
  pool.Run(w.rows, kRowGrain, std::cref(multiply));
}

}  // namespace inlay
#endif  // HWY_ONCE
