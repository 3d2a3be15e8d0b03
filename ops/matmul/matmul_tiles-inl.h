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
#include "ops/matmul/matmul_loops.h"
#include "ops/matmul/matmul_task.h"
#include "ops/matmul/matmul_unpacked-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {
namespace {

// How many slices a kernel computes at once for a few tokens.
template <class Kernel>
constexpr size_t kFew = HWY_HAVE_SCALABLE ? 1 : std::max(kFewSlices, Kernel::kChains);

// Runs a kernel's T slices for the C tokens from `token` on. The last token stands in for what is
// missing to C: its results are computed, and stored, more than once.
template <class Kernel, size_t T, size_t C>
HWY_INLINE void RunTokens(const typename Kernel::Slice* slices, const MatMulTask& task,
                          const typename Kernel::Activations& x, size_t token, Prefetch fetch) {
  decltype(&*x.Row(0)) rows[C];
  float* y[C];
  for (size_t c = 0; c < C; ++c) {
    const size_t t = std::min(token + c, task.y.rows - 1);
    rows[c] = x.Row(task.InputRow(t));
    y[c] = task.y.Row(t);
  }
  Kernel::template Run<T, C>(slices, rows, task.w->cols(), fetch, Outputs{y, task.w->rows()});
}

// At most kFewTokens, in one call.
struct FewTokens {
  template <class Kernel, size_t T>
  static HWY_INLINE void Run(const typename Kernel::Slice* slices, const MatMulTask& task,
                             const typename Kernel::Activations& x) {
    if (task.y.rows == 1) return RunTokens<Kernel, T, 1>(slices, task, x, 0, kAlongTile);
    if constexpr (kFewTokens == 2) RunTokens<Kernel, T, 2>(slices, task, x, 0, kAlongTile);
  }
};

// Any number of tokens. The slices stay in the cache for all of them. The last calls prefetch the
// next slices, each another part of them, while they compute: one call alone would wait for memory,
// and the others leave it idle.
struct ManyTokens {
  template <class Kernel, size_t T>
  static HWY_INLINE void Run(const typename Kernel::Slice* slices, const MatMulTask& task,
                             const typename Kernel::Activations& x) {
    constexpr size_t kMostFetching = 8;
    const size_t tiles = std::max<size_t>(1, T * hn::Lanes(DRows()) / kTileRows);
    size_t fetching = 0;
    ForTokenCalls<Kernel::kCols>(task.y.rows, [&]<size_t C>(size_t token, size_t left) HWY_ATTR {
      if (token == 0) fetching = std::min(left + 1, kMostFetching);
      Prefetch fetch;
      if (left < fetching) {
        fetch = {.ahead = tiles * task.w->tile_bytes(),
                 .next = left,
                 .step = fetching,
                 .into_second_level = true};
      }
      RunTokens<Kernel, T, C>(slices, task, x, token, fetch);
    });
  }
};

// The slices from `slice` on for all tokens, T at a time while that many are left before `end`;
// returns the first slice that is left. Slices are numbered through all tiles.
template <class Kernel, class Tokens, size_t T>
size_t MultiplySlices(const MatMulTask& task, const typename Kernel::Activations& x, size_t slice,
                      size_t end) {
  const size_t lanes = hn::Lanes(DRows());
  const size_t per_tile = kTileRows / lanes;
  for (; slice + T <= end; slice += T) {
    const auto with = [&]<size_t... t>(std::index_sequence<t...>) HWY_ATTR {
      const typename Kernel::Slice slices[T] = {
          {*task.w, (slice + t) / per_tile, (slice + t) % per_tile * lanes}...};
      Tokens::template Run<Kernel, T>(slices, task, x);
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
  // An odd slice is left only where a tile is one slice.
  constexpr bool kOdd = hn::MaxLanes(DRows()) == kTileRows;
  constexpr size_t kSlices = kFew<Kernel>;
  if (task.y.rows <= kFewTokens) {
    slice = MultiplySlices<Kernel, FewTokens, kSlices>(task, x, slice, end);
    if constexpr (kOdd && kSlices > 1) {
      MultiplySlices<Kernel, FewTokens, 1>(task, x, slice, end);
    }
    return;
  }
  slice = MultiplySlices<Kernel, ManyTokens, kManySlices>(task, x, slice, end);
  if constexpr (kOdd && kManySlices > 1) {
    MultiplySlices<Kernel, ManyTokens, 1>(task, x, slice, end);
  }
}

// The same for quantized weights.
template <class Format>
void MultiplyQuantized(const MatMulTask& task, const QuantizedRows& x, size_t begin, size_t end) {
#if INLAY_USES_I8MM
  if (task.y.rows >= kMatrixTokens) return MultiplyMatrices<Format>(task, x, begin, end);
#endif
#if HWY_ARCH_X86
  if constexpr (kUnpacks) {
    if (task.y.rows >= kLeastUnpackedTokens<Format>) {
      return MultiplyUnpacked<Format>(task, x, begin, end);
    }
  }
#endif
  Multiply<QuantizedKernel<Format>>(task, x, begin, end);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#endif  // toggling guard
