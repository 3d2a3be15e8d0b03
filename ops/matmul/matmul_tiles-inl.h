// The matmul's outer loops: all tokens by a range of tiles of packed weights.

// Compiled once per CPU target, hence the toggling guard.
#if defined(INLAY_OPS_MATMUL_MATMUL_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INLAY_OPS_MATMUL_MATMUL_TILES_INL_H_
#undef INLAY_OPS_MATMUL_MATMUL_TILES_INL_H_
#else
#define INLAY_OPS_MATMUL_MATMUL_TILES_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <utility>

#include "ops/matmul/matmul_i8mm-inl.h"
#include "ops/matmul/matmul_kernels-inl.h"
#include "ops/matmul/matmul_task.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {
namespace {

// How many slices a kernel computes at once for a few tokens.
template <class Kernel>
constexpr size_t kFew = HWY_HAVE_SCALABLE ? 1 : std::max(kFewSlices, Kernel::kChains);

// Runs a kernel's T slices for the tokens from `token` on, C at a time while that many are left;
// returns the first token that is left. Only the call for the last tokens prefetches, or every call
// if there are at most kCols tokens.
template <class Kernel, size_t T, size_t C>
HWY_INLINE size_t RunTokens(const typename Kernel::Slice* slices, const MatMulTask& task,
                            const typename Kernel::Activations& x, size_t token, size_t ahead) {
  const size_t tokens = task.y.rows;
  for (; token + C <= tokens; token += C) {
    decltype(&*x.Row(0)) rows[C];
    float* y[C];
    for (size_t c = 0; c < C; ++c) {
      rows[c] = x.Row(task.InputRow(token + c));
      y[c] = task.y.Row(token + c);
    }
    const bool fetch = tokens <= Kernel::kCols || token + C == tokens;
    Kernel::template Run<T, C>(slices, rows, task.w->cols(), fetch ? ahead : 0,
                               Outputs{y, task.w->rows()});
  }
  return token;
}

// Runs a kernel's T slices for all tokens: kCols at a time while that many are left, then four, two
// and one. The slices stay in the cache for all tokens. The last tokens use no more slices at once
// than a few tokens alone, so that fewer kernels are instantiated.
template <class Kernel, size_t T, size_t kCols>
HWY_INLINE void RunSlices(const typename Kernel::Slice* slices, const MatMulTask& task,
                          const typename Kernel::Activations& x, size_t ahead) {
  const size_t rest = RunTokens<Kernel, T, kCols>(slices, task, x, 0, ahead);
  if (rest == task.y.rows) return;
  constexpr size_t kLast = std::min(T, kFew<Kernel>);
  for (size_t t = 0; t < T; t += kLast) {
    size_t token = rest;
    if constexpr (kCols > 4) {
      token = RunTokens<Kernel, kLast, 4>(slices + t, task, x, token, ahead);
    }
    if constexpr (kCols > 2) {
      token = RunTokens<Kernel, kLast, 2>(slices + t, task, x, token, ahead);
    }
    RunTokens<Kernel, kLast, 1>(slices + t, task, x, token, ahead);
  }
}

// The slices from `slice` on for all tokens, T at a time while that many are left before `end`;
// returns the first slice that is left. Slices are numbered through all tiles.
template <class Kernel, size_t T, size_t kCols>
size_t MultiplySlices(const MatMulTask& task, const typename Kernel::Activations& x, size_t slice,
                      size_t end, size_t ahead) {
  const size_t lanes = hn::Lanes(DRows());
  const size_t per_tile = kTileRows / lanes;
  for (; slice + T <= end; slice += T) {
    const auto with = [&]<size_t... t>(std::index_sequence<t...>) HWY_ATTR {
      const typename Kernel::Slice slices[T] = {
          {*task.w, (slice + t) / per_tile, (slice + t) % per_tile * lanes}...};
      RunSlices<Kernel, T, kCols>(slices, task, x, ahead);
    };
    with(std::make_index_sequence<T>());
  }
  return slice;
}

// The tiles [begin, end) for all tokens.
template <class Kernel>
void Multiply(const MatMulTask& task, const typename Kernel::Activations& x, size_t begin,
              size_t end) {
  const size_t per_tile = kTileRows / hn::Lanes(DRows());
  size_t slice = begin * per_tile;
  end *= per_tile;
  if (task.y.rows <= Kernel::kFewCols) {
    slice = MultiplySlices<Kernel, kFew<Kernel>, Kernel::kFewCols>(task, x, slice, end, kAhead);
  }
  const size_t tiles = std::max<size_t>(1, kManySlices / per_tile);
  slice = MultiplySlices<Kernel, kManySlices, Kernel::kCols>(task, x, slice, end,
                                                             tiles * task.w->tile_bytes());
  // An odd slice is left only where a tile is one slice.
  if constexpr (kManySlices > 1 && hn::MaxLanes(DRows()) == kTileRows) {
    MultiplySlices<Kernel, 1, Kernel::kCols>(task, x, slice, end, task.w->tile_bytes());
  }
}

// The same for quantized weights.
template <class Format>
void MultiplyQuantized(const MatMulTask& task, const QuantizedRows& x, size_t begin, size_t end) {
#if INLAY_USES_I8MM
  if (task.y.rows >= kMatrixTokens) return MultiplyMatrices<Format>(task, x, begin, end);
#endif
  Multiply<QuantizedKernel<Format>>(task, x, begin, end);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#endif  // toggling guard
