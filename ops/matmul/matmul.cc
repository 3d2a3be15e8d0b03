#include "ops/matmul/matmul.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "ops/matmul/matmul_loops.h"
#include "ops/matmul/matmul_tiles.h"

namespace inlay {
namespace {

// The tiles [begin, end) of one task.
void MultiplyTiles(const TileKernels& kernels, const MatMulTask& task, const Operand& x,
                   size_t begin, size_t end) {
  switch (task.w->format()) {
    case PackedFormat::kF32:
    case PackedFormat::kF16:
      return kernels.floats(task, x.floats(), begin, end);
    case PackedFormat::kBF16:
      return kernels.bf16(task, x.bf16(), begin, end);
    case PackedFormat::kBytes32:
      return kernels.bytes(task, x.quantized(), begin, end);
    case PackedFormat::kNibbles32:
    case PackedFormat::kFives32:
    case PackedFormat::kFivesOffset32:
    case PackedFormat::kFivesK:
    case PackedFormat::kNibblesK:
    case PackedFormat::kSixK:
    case PackedFormat::kNibblesOffset32:
      return kernels.nibbles(task, x.quantized(), begin, end);
    case PackedFormat::kTableIq4Nl:
    case PackedFormat::kTableMxfp4:
    case PackedFormat::kTableIq4Xs:
    case PackedFormat::kTableIq3Xxs:
    case PackedFormat::kTableIq3S:
    case PackedFormat::kTableIq2S:
    case PackedFormat::kTableIq2Xxs:
    case PackedFormat::kTwosK:
    case PackedFormat::kThreesK:
      return kernels.tables(task, x.quantized(), begin, end);
  }
}

// An estimate in nanoseconds of a thread's time for a tile and `tokens` tokens: to read the tile or
// to compute, whichever is longer.
double TileTime(const PackedMatrix& w, size_t tokens) {
  constexpr double kBytes = 20;  // per nanosecond
  const double operations = IsQuantized(w.format()) ? 200 : 50;
  const double done = 2.0 * kTileRows * static_cast<double>(w.cols() * tokens);
  return std::max(static_cast<double>(w.tile_bytes()) / kBytes, done / operations);
}

// Tiles that kernels for the widest vectors multiply at once.
constexpr size_t kPair = 2;

// How many tiles in turn the kernels multiply by `tokens` tokens at most, so that chunks of fewer
// would read their activations from the third-level cache more often.
size_t MostTilesTogether(const TileKernels& kernels, const PackedMatrix& w, size_t tokens) {
  if (w.format() == PackedFormat::kBF16) {
    return kernels.use_amx && tokens >= kLeastAmxTokens ? kAmxTiles : kPair;
  }
  if (!IsQuantized(w.format())) return kPair;
  if (kernels.use_amx) return IsForAmx(w.format(), tokens) ? kAmxTiles : kPair;
  return kernels.unpack && tokens >= kManyUnpackedTokens ? kUnpackedTiles : kPair;
}

// Tiles that are multiplied together; a chunk is a multiple of them. As many, up to `most`, as
// leave kChunks chunks for each thread.
size_t TilesTogether(size_t units, size_t tokens, size_t threads, size_t most) {
  constexpr size_t kChunks = 2;  // of each thread
  const size_t chunks = kChunks * threads;
  const size_t pairs = (units / tokens + kPair * chunks - 1) / (kPair * chunks);
  return std::clamp(kPair * pairs, kPair, most);
}

// The chunk size for a product's `units`, each a tile for one of `tokens` tokens.
size_t ChunkOf(size_t units, size_t tokens, double nanoseconds, size_t threads,
               size_t most_together) {
  const size_t together = TilesTogether(units, tokens, threads, most_together) * tokens;
  return std::max(UnitsOfChunk(units, nanoseconds, threads) / together * together, together);
}

}  // namespace

MatMulAhead::MatMulAhead(std::vector<const PackedMatrix*> matrices, size_t threads)
    : matrices_(std::move(matrices)) {
  double time = 0;
  for (const PackedMatrix* w : matrices_) {
    tiles_ += w->tiles();
    time += static_cast<double>(w->tiles()) * TileTime(*w, 1);
  }
  if (tiles_ > 0) chunk_ = ChunkOf(tiles_, 1, time, threads, kPair);
}

MemoryAhead MatMulAhead::Head(size_t range, size_t ranges) const {
  const size_t chunks = (tiles_ + chunk_ - 1) / chunk_;
  size_t tile = range * chunks / ranges * chunk_;
  for (const PackedMatrix* w : matrices_) {
    if (tile < w->tiles()) return {w->tile(tile), (w->tiles() - tile) * w->tile_bytes()};
    tile -= w->tiles();
  }
  return {};
}

void MatMul(std::span<const MatMulTask> tasks, const Operand& x, Team& team,
            const PhaseAhead* ahead) {
  // A tile has one unit per token, because its cost is proportional to them.
  size_t units = 0;
  size_t most_tokens = 0;
  double time = 0;
  const TileKernels kernels = ChosenTileKernels();
  size_t most_together = kPair;
  for (const MatMulTask& task : tasks) {
    assert(task.w->cols() == x.floats().cols && task.y.cols == task.w->rows());
    assert(task.x_rows != nullptr || task.y.rows == x.rows());
    assert(task.w->format() != PackedFormat::kBF16 || x.bf16().data != nullptr);
    assert(!IsQuantized(task.w->format()) || x.quantized().blocks != nullptr);
    if (task.y.rows == 0) continue;
    units += task.w->tiles() * task.y.rows;
    most_tokens = std::max(most_tokens, task.y.rows);
    time += static_cast<double>(task.w->tiles()) * TileTime(*task.w, task.y.rows);
    most_together = std::max(most_together, MostTilesTogether(kernels, *task.w, task.y.rows));
  }
  if (units == 0) return;
  // Units are numbered through all tasks. A tile belongs to the share that has its first unit.
  const auto work = [&](const Share& share) {
    size_t first = 0;
    for (const MatMulTask& task : tasks) {
      const size_t tokens = task.y.rows;
      const size_t last = first + task.w->tiles() * tokens;
      if (share.begin < last && tokens > 0) {
        const auto tile = [&](size_t unit) {
          // Decode avoids the division, because its chunks are short.
          return tokens == 1 ? unit - first : (unit - first + tokens - 1) / tokens;
        };
        MultiplyTiles(kernels, task, x, tile(std::max(share.begin, first)),
                      tile(std::min(share.end, last)));
      }
      if (last >= share.end) break;
      first = last;
    }
  };
  team.Run(units, ChunkOf(units, most_tokens, time, team.threads(), most_together), work, ahead);
}

}  // namespace inlay
