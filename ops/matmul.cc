#include "ops/matmul.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/matmul.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"
#include "ops/matmul_kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {

// Runs a kernel's T parts for all tokens: kCols at a time while there are so many, then four, two
// and one. The parts stay in the cache while the tokens pass. The last of them, or where they are
// few all, fetch what lies `ahead`.
template <class Kernel, size_t T>
HWY_INLINE void RunTokens(const typename Kernel::Part* parts, const MatMulTask& task,
                          const typename Kernel::Activations& x, size_t ahead) {
  const size_t tokens = task.y.rows;
  size_t token = 0;
  const auto run = [&]<size_t C>() HWY_ATTR {
    for (; token + C <= tokens; token += C) {
      decltype(&*x.Row(0)) rows[C];
      float* y[C];
      for (size_t c = 0; c < C; ++c) {
        rows[c] = x.Row(task.InputRow(token + c));
        y[c] = task.y.Row(token + c);
      }
      const bool fetch = tokens <= kCols || token + C == tokens;
      Kernel::template Run<T, C>(parts, rows, task.w->cols(), fetch ? ahead : 0,
                                 Outputs{y, task.w->rows()});
    }
  };
  run.template operator()<kCols>();
  if constexpr (kCols > 4) run.template operator()<4>();
  if constexpr (kCols > 2) run.template operator()<2>();
  if constexpr (kCols > 1) run.template operator()<1>();
}

// T tiles from `first` on for all tokens, part by part of the tiles' rows.
template <class Kernel, size_t T>
void MultiplyTiles(const MatMulTask& task, const typename Kernel::Activations& x, size_t first) {
  for (size_t offset = 0; offset < kTileRows; offset += hn::Lanes(DRows())) {
    const auto with = [&]<size_t... t>(std::index_sequence<t...>) HWY_ATTR {
      const typename Kernel::Part parts[T] = {{*task.w, first + t, offset}...};
      RunTokens<Kernel, T>(parts, task, x, T * task.w->tile_bytes());
    };
    with(std::make_index_sequence<T>());
  }
}

// The tiles [begin, end) for all tokens.
template <class Kernel>
void Multiply(const MatMulTask& task, const typename Kernel::Activations& x, size_t begin,
              size_t end) {
  size_t tile = begin;
#if !HWY_HAVE_SCALABLE
  if (task.y.rows <= kCols) {
    constexpr size_t kFewParts = std::max(kParts, Kernel::kChains);
    constexpr size_t kFewTiles = kFewParts / kParts;
    for (; tile + kFewTiles <= end; tile += kFewTiles) {
      const auto with = [&]<size_t... p>(std::index_sequence<p...>) HWY_ATTR {
        const typename Kernel::Part parts[] = {
            {*task.w, tile + p / kParts, p % kParts * hn::MaxLanes(DRows())}...};
        RunTokens<Kernel, kFewParts>(parts, task, x, kAhead);
      };
      with(std::make_index_sequence<kFewParts>());
    }
  }
#endif
  for (; tile + kTiles <= end; tile += kTiles) MultiplyTiles<Kernel, kTiles>(task, x, tile);
  for (; tile < end; ++tile) MultiplyTiles<Kernel, 1>(task, x, tile);
}

// The tiles [begin, end) of one task.
void MultiplyTask(const MatMulTask& task, ConstFloatRows x, const Bf16Rows& halves,
                  const QuantizedRows& quantized, size_t begin, size_t end) {
  switch (task.w->format()) {
    case PackedFormat::kF32:
      return Multiply<FloatKernel<float>>(task, x, begin, end);
    case PackedFormat::kF16:
      return Multiply<FloatKernel<hwy::float16_t>>(task, x, begin, end);
    case PackedFormat::kBF16:
      return Multiply<PairKernel>(task, halves, begin, end);
    case PackedFormat::kBytes32:
      return Multiply<QuantizedKernel<Bytes32>>(task, quantized, begin, end);
    case PackedFormat::kNibbles32:
      return Multiply<QuantizedKernel<Nibbles32>>(task, quantized, begin, end);
    case PackedFormat::kFives32:
      return Multiply<QuantizedKernel<Fives32>>(task, quantized, begin, end);
    case PackedFormat::kNibblesK:
      return Multiply<QuantizedKernel<NibblesK>>(task, quantized, begin, end);
    case PackedFormat::kSixK:
      return Multiply<QuantizedKernel<SixK>>(task, quantized, begin, end);
    case PackedFormat::kWide32:
      return Multiply<QuantizedKernel<Wide<PackedFormat::kWide32>>>(task, quantized, begin, end);
    case PackedFormat::kWide16:
      return Multiply<QuantizedKernel<Wide<PackedFormat::kWide16>>>(task, quantized, begin, end);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace inlay {
namespace {

HWY_EXPORT(MultiplyTask);

}  // namespace

void MatMul(const MatMulTask* tasks, size_t count, MatMulInput& x, ThreadPool& pool) {
  const ConstFloatRows floats = x.floats();
  if (floats.rows == 0) return;
  QuantizedRows quantized;
  Bf16Rows halves;
  // A tile costs as much as it has tokens.
  size_t units = 0;
  for (size_t i = 0; i < count; ++i) {
    const MatMulTask& task = tasks[i];
    assert(task.w->cols() == floats.cols && task.y.cols == task.w->rows());
    assert(task.x_rows != nullptr || task.y.rows == floats.rows);
    if (task.w->format() == PackedFormat::kBF16) halves = x.Halves(pool);
    if (IsQuantized(task.w->format())) quantized = x.Quantized(pool);
    units += task.w->tiles() * task.y.rows;
  }
  const auto multiply = HWY_DYNAMIC_POINTER(MultiplyTask);
  // All tasks in a row. A tile belongs to the range that its first unit lies in.
  const auto work = [&](size_t begin, size_t end) {
    size_t first = 0;
    for (size_t i = 0; i < count && first < end; ++i) {
      const size_t tokens = tasks[i].y.rows;
      const size_t last = first + tasks[i].w->tiles() * tokens;
      if (tokens > 0 && begin < last) {
        const auto tile = [&](size_t unit) { return (unit - first + tokens - 1) / tokens; };
        multiply(tasks[i], floats, halves, quantized, tile(std::max(begin, first)),
                 tile(std::min(end, last)));
      }
      first = last;
    }
  };
  pool.Run(units, 1, std::cref(work));
}

}  // namespace inlay
#endif  // HWY_ONCE
