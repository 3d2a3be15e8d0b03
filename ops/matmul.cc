#include "ops/matmul.h"

#include <algorithm>
#include <cassert>
#include <functional>

#include "ops/matmul_tiles.h"

namespace inlay {
namespace {

// The tiles [begin, end) of one task.
void MultiplyTiles(const MatMulTask& task, ConstFloatRows floats, const Bf16Rows& halves,
                   const QuantizedRows& quantized, size_t begin, size_t end) {
  switch (task.w->format()) {
    case PackedFormat::kF32:
    case PackedFormat::kF16:
      return MultiplyFloatTiles(task, floats, begin, end);
    case PackedFormat::kBF16:
      return MultiplyBf16Tiles(task, halves, begin, end);
    case PackedFormat::kBytes32:
    case PackedFormat::kWide32:
    case PackedFormat::kWide16:
      return MultiplyByteTiles(task, quantized, begin, end);
    case PackedFormat::kNibbles32:
    case PackedFormat::kFives32:
    case PackedFormat::kFivesOffset32:
    case PackedFormat::kFivesK:
    case PackedFormat::kNibblesK:
    case PackedFormat::kSixK:
      return MultiplyNibbleTiles(task, quantized, begin, end);
  }
}

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
  // All tasks in a row. A tile belongs to the range that its first unit lies in.
  const auto work = [&](size_t begin, size_t end) {
    size_t first = 0;
    for (size_t i = 0; i < count && first < end; ++i) {
      const size_t tokens = tasks[i].y.rows;
      const size_t last = first + tasks[i].w->tiles() * tokens;
      if (tokens > 0 && begin < last) {
        const auto tile = [&](size_t unit) { return (unit - first + tokens - 1) / tokens; };
        MultiplyTiles(tasks[i], floats, halves, quantized, tile(std::max(begin, first)),
                      tile(std::min(end, last)));
      }
      first = last;
    }
  };
  pool.Run(units, 1, std::cref(work));
}

}  // namespace inlay
