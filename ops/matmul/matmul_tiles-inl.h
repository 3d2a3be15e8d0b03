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

// How many parts at once a kernel computes for a few tokens.
template <class Kernel>
constexpr size_t kFew = HWY_HAVE_SCALABLE ? 1 : std::max(kFewParts, Kernel::kChains);

// Runs a kernel's T parts for the tokens from `token` on, C at a time while there are so many;
// returns where it stopped. The last tokens, or where they are few all, fetch what lies `ahead`.
template <class Kernel, size_t T, size_t C>
HWY_INLINE size_t RunTokens(const typename Kernel::Part* parts, const MatMulTask& task,
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
    Kernel::template Run<T, C>(parts, rows, task.w->cols(), fetch ? ahead : 0,
                               Outputs{y, task.w->rows()});
  }
  return token;
}

// Runs a kernel's T parts for all tokens: kCols at a time while there are so many, then four, two
// and one. The parts stay in the cache while the tokens pass. The last tokens take no more parts at
// once than a few tokens alone, so that less code is made.
template <class Kernel, size_t T, size_t kCols>
HWY_INLINE void RunParts(const typename Kernel::Part* parts, const MatMulTask& task,
                         const typename Kernel::Activations& x, size_t ahead) {
  const size_t rest = RunTokens<Kernel, T, kCols>(parts, task, x, 0, ahead);
  if (rest == task.y.rows) return;
  constexpr size_t kLast = std::min(T, kFew<Kernel>);
  for (size_t t = 0; t < T; t += kLast) {
    size_t token = rest;
    if constexpr (kCols > 4) {
      token = RunTokens<Kernel, kLast, 4>(parts + t, task, x, token, ahead);
    }
    if constexpr (kCols > 2) {
      token = RunTokens<Kernel, kLast, 2>(parts + t, task, x, token, ahead);
    }
    RunTokens<Kernel, kLast, 1>(parts + t, task, x, token, ahead);
  }
}

// The parts from `part` on for all tokens, T at a time while there are so many before `end`;
// returns where it stopped. Parts are numbered through all tiles.
template <class Kernel, size_t T, size_t kCols>
size_t MultiplyParts(const MatMulTask& task, const typename Kernel::Activations& x, size_t part,
                     size_t end, size_t ahead) {
  const size_t lanes = hn::Lanes(DRows());
  const size_t per_tile = kTileRows / lanes;
  for (; part + T <= end; part += T) {
    const auto with = [&]<size_t... t>(std::index_sequence<t...>) HWY_ATTR {
      const typename Kernel::Part parts[T] = {
          {*task.w, (part + t) / per_tile, (part + t) % per_tile * lanes}...};
      RunParts<Kernel, T, kCols>(parts, task, x, ahead);
    };
    with(std::make_index_sequence<T>());
  }
  return part;
}

// The tiles [begin, end) for all tokens.
template <class Kernel>
void Multiply(const MatMulTask& task, const typename Kernel::Activations& x, size_t begin,
              size_t end) {
  const size_t per_tile = kTileRows / hn::Lanes(DRows());
  size_t part = begin * per_tile;
  end *= per_tile;
  if (task.y.rows <= Kernel::kFewCols) {
    part = MultiplyParts<Kernel, kFew<Kernel>, Kernel::kFewCols>(task, x, part, end, kAhead);
  }
  const size_t tiles = std::max<size_t>(1, kManyParts / per_tile);
  part = MultiplyParts<Kernel, kManyParts, Kernel::kCols>(task, x, part, end,
                                                          tiles * task.w->tile_bytes());
  // An odd one is left only where a tile has no more.
  if constexpr (kManyParts > 1 && hn::MaxLanes(DRows()) == kTileRows) {
    MultiplyParts<Kernel, 1, Kernel::kCols>(task, x, part, end, task.w->tile_bytes());
  }
}

// The same of quantized weights.
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
