#include "ops/matmul.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/matmul.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"
#include "ops/dot-inl.h"
#include "ops/quant_matmul.h"
#include "ops/quant_unpack.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {

// From this many tokens on, converting a weight once into a float buffer is cheaper than converting
// it for each tile of tokens.
constexpr size_t kConvertTokens = 8;

// Weight rows are visited in panels that stay in a private L2 cache while all tokens pass by.
constexpr size_t kPanelBytes = 256 * 1024;

// Output rows [begin, end) of all tokens, for weights of type W.
template <class W>
void MatMulRows(const WeightMatrix& w, ConstFloatRows x, FloatRows y, size_t begin, size_t end) {
  const size_t cols = w.cols;
  const Rows<const W> all(static_cast<const W*>(w.data), w.rows, cols);
  if (x.rows < kConvertTokens) {
    MultiplyRows(all.Slice(begin, end - begin), x, y.Columns(begin, end - begin));
    return;
  }
  const size_t fitting = kPanelBytes / (sizeof(float) * cols) / kTileRows * kTileRows;
  const size_t panel_rows = std::clamp<size_t>(fitting, kTileRows, 64);
  thread_local std::vector<float> buffer;
  for (size_t r = begin; r < end; r += panel_rows) {
    const size_t rows = std::min(panel_rows, end - r);
    const FloatRows out = y.Columns(r, rows);
    if constexpr (std::is_same_v<W, float>) {
      MultiplyRows(all.Slice(r, rows), x, out);
    } else {
      buffer.resize(std::max(buffer.size(), panel_rows * cols));
      for (size_t i = 0; i < rows; ++i) ConvertRow(all.Row(r + i), cols, &buffer[i * cols]);
      MultiplyRows(ConstFloatRows(buffer.data(), rows, cols), x, out);
    }
  }
}

void MatMulRange(const WeightMatrix& w, ConstFloatRows x, FloatRows y, size_t begin, size_t end) {
  switch (w.type) {
    case WeightType::kF32:
      return MatMulRows<float>(w, x, y, begin, end);
    case WeightType::kF16:
      return MatMulRows<hwy::float16_t>(w, x, y, begin, end);
    case WeightType::kBF16:
      return MatMulRows<hwy::bfloat16_t>(w, x, y, begin, end);
    default:
      assert(false);  // quantized types go elsewhere
  }
}

void ConvertWeights(const WeightMatrix& w, size_t row, float* out) {
  const void* from = w.RowData(row);
  switch (w.type) {
    case WeightType::kF32:
      return ConvertRow(static_cast<const float*>(from), w.cols, out);
    case WeightType::kF16:
      return ConvertRow(static_cast<const hwy::float16_t*>(from), w.cols, out);
    case WeightType::kBF16:
      return ConvertRow(static_cast<const hwy::bfloat16_t*>(from), w.cols, out);
    default:
      assert(false);  // quantized types go elsewhere
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace inlay {
namespace {

HWY_EXPORT(MatMulRange);
HWY_EXPORT(ConvertWeights);

// Threads take whole multiples of this many output rows: a cache line of floats, so that two
// threads never write to the same line of an aligned y.
constexpr size_t kRowGrain = 16;

bool IsQuantized(WeightType type) { return GetWeightTypeInfo(type).block_size > 1; }

}  // namespace

void MatMul(const WeightMatrix& w, ConstFloatRows x, FloatRows y, ThreadPool& pool) {
  assert(x.cols == w.cols && y.cols == w.rows && x.rows == y.rows);
  if (x.rows == 0) return;
  if (IsQuantized(w.type)) return QuantizedMatMul(w, x, y, pool);
  const auto work = [&](size_t begin, size_t end) {
    HWY_DYNAMIC_DISPATCH(MatMulRange)(w, x, y, begin, end);
  };
  pool.Run(w.rows, kRowGrain, std::cref(work));
}

void DequantizeRow(const WeightMatrix& w, size_t row, float* out) {
  if (IsQuantized(w.type)) return DequantizeBlocks(w.type, w.RowData(row), w.cols, out);
  HWY_DYNAMIC_DISPATCH(ConvertWeights)(w, row, out);
}

}  // namespace inlay
#endif  // HWY_ONCE
