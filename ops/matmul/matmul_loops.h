// What the outer loops of several kernels share: how they divide columns and tokens, and prefetch
// weights.
#ifndef INLAY_OPS_MATMUL_MATMUL_LOOPS_H_
#define INLAY_OPS_MATMUL_MATMUL_LOOPS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hwy/base.h"
#include "ops/matmul/packed_matrix.h"
#include "ops/matmul/quantized_rows.h"

namespace inlay {

// Kernels for CPUs without instructions for products of bytes unpack at most so many tiles at once,
// and then multiply them by all tokens. From this many tokens on they do so for every format.
inline constexpr size_t kUnpackedTiles = 4;
inline constexpr size_t kManyUnpackedTokens = 20;

// The size of parts of `all`, as equal as they can be with the fewest parts of `most` at most.
constexpr size_t EvenPart(size_t all, size_t most) {
  const size_t parts = std::max<size_t>((all + most - 1) / most, 1);
  return (all + parts - 1) / parts;
}

// Calls run.operator()<C>(token, left) for the C tokens from `token` on, with `left` calls to
// follow, until all tokens are computed. C is kCols, which is fastest; the last one or two calls
// take about two thirds as many where that wastes less. Only the last call may go beyond the
// tokens.
template <size_t kCols, class Run>
void ForTokenCalls(size_t tokens, const Run& run) {
  constexpr size_t kFewer = (2 * kCols + 2) / 3;
  size_t whole = tokens / kCols, fewer = 0;
  if (const size_t rest = tokens % kCols; rest != 0) {
    if (whole > 0 && kCols + rest <= 2 * kFewer) {
      --whole;
      fewer = 2;
    } else if (rest <= kFewer) {
      fewer = 1;
    } else {
      ++whole;
    }
  }
  size_t left = whole + fewer;
  size_t token = 0;
  for (; whole > 0; --whole, token += kCols) run.template operator()<kCols>(token, --left);
  for (; fewer > 0; --fewer, token += kFewer) run.template operator()<kFewer>(token, --left);
}

// Prefetches into the second-level cache what follows `blocks` quantization blocks of columns from
// `block` on of the tiles [begin, end): the next blocks of these tiles or, after the last ones, the
// first of the next tiles. In as many steps as `fetches`, because only a few lines can be
// under way to the cache at a time.
class WeightsAhead {
 public:
  WeightsAhead(const PackedMatrix& w, size_t block, size_t blocks, size_t begin, size_t end,
               size_t fetches) {
    const size_t all = w.cols() / kQuantBlock;
    const bool is_last = block + blocks >= all;
    const size_t next = is_last ? 0 : block + blocks;
    const size_t first = is_last ? end : begin;
    const size_t tiles = std::min(end - begin, w.tiles() - first);
    if (tiles == 0) return;
    // Where a quantization block of columns begins in a tile.
    const GroupLayout layout = GetGroupLayout(w.format());
    const auto offset = [&](size_t b) { return layout.Group(b * kQuantBlock / layout.cols); };
    const size_t from = offset(next);
    tile_ = w.tile(first) + from;
    tile_bytes_ = w.tile_bytes();
    bytes_ = offset(std::min(next + blocks, all)) - from;
    tiles_left_ = tiles;
    step_ = (tiles * bytes_ / fetches + 63) / 64 * 64;
  }

  // The next step.
  HWY_INLINE void Fetch() {
    if (tiles_left_ == 0) return;
    for (size_t i = 0; i < step_; i += 64) {
      __builtin_prefetch(tile_ + at_ + i, /*rw=*/0, /*locality=*/2);
    }
    at_ += step_;
    if (at_ < bytes_) return;
    at_ = 0;
    tile_ += tile_bytes_;
    --tiles_left_;
  }

 private:
  const uint8_t* tile_ = nullptr;
  size_t tile_bytes_ = 0;
  size_t bytes_ = 0;  // of a tile
  size_t at_ = 0;
  size_t tiles_left_ = 0, step_ = 0;
};

}  // namespace inlay

#endif  // INLAY_OPS_MATMUL_MATMUL_LOOPS_H_
