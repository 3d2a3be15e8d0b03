// The matmul's inner loops: a few tiles of packed weights by a few rows of activations.

// Compiled once per CPU target, hence the toggling guard.
#if defined(INLAY_OPS_MATMUL_MATMUL_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INLAY_OPS_MATMUL_MATMUL_KERNELS_INL_H_
#undef INLAY_OPS_MATMUL_MATMUL_KERNELS_INL_H_
#else
#define INLAY_OPS_MATMUL_MATMUL_KERNELS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "hwy/highway.h"
#include "ops/matmul/group_sums-inl.h"
#include "ops/matmul/operand.h"
#include "ops/matmul/packed_formats-inl.h"
#include "ops/matmul/packed_matrix.h"
#include "ops/simd-inl.h"
// After all headers of Highway.
#include "ops/cpu/extension-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {
namespace {

// Calls f.operator()<i>() for each i below n. Unlike a loop, this leaves vectors in an array that
// is indexed by i in registers: g++ 12 keeps those of a loop in memory. `f` is INLAY_UNROLLED, too.
#undef INLAY_UNROLLED
#define INLAY_UNROLLED HWY_ATTR __attribute__((always_inline))
template <size_t n, class F>
HWY_INLINE void Unrolled(const F& f) {
  const auto each = [&]<size_t... i>(std::index_sequence<i...>) INLAY_UNROLLED {
    (f.template operator()<i>(), ...);
  };
  each(std::make_index_sequence<n>());
}

// What one call of a kernel computes: some neighbouring slices of tiles for some tokens. A slice is
// as many rows of a tile as a vector holds.
#if HWY_HAVE_SCALABLE
constexpr size_t kFloatCols = 1;
constexpr size_t kPairCols = 1;
constexpr size_t kQuantizedCols = 1;
constexpr size_t kManySlices = 1;
constexpr size_t kFewTokens = 1;
constexpr size_t kFewSlices = 1;
#else
// With two slices, each loaded activation is used twice. Each slice has a total for every token:
// 2 x 6 fit 16 registers with an operand or two; pairs of bf16 that are converted to float first
// need more.
constexpr size_t kManySlices = 2;
constexpr size_t kFloatCols = HWY_TARGET <= HWY_AVX2 ? 6 : 3;
// With instructions that multiply matrices they need fewer: 2 x 12 totals, four weights and two
// activations are 30 of 32 registers.
constexpr size_t kPairCols = kMatrices ? 12 : HWY_TARGET == HWY_AVX2 ? 4 : kFloatCols;
// Quantized kernels have an integer sum beside each total: 2 x 6 fit 32 registers, 2 x 3 fit 16.
// (With Arm's extensions, the other 8 are four weights, the one or two activations they are
// multiplied with, and constants of the format.)
// Where products are added in pairs first, the pairs need as many registers again: with 2 x 6 on
// AVX3, 512 tokens took 1.07 (Q6_K) to 1.4 times (Q4_0) as long as with 2 x 3.
constexpr size_t kQuantizedCols = (HWY_TARGET <= HWY_AVX3 && !kInPairs) || kByLanes ? 6 : 3;
// With one or two tokens the CPU waits for memory, which is fastest when read sequentially: all
// slices of one tile at once. With 16 registers there are at most two slices, though.
constexpr size_t kFewTokens = 2;
constexpr size_t kFewSlices =
    std::min<size_t>(kTileRows / hn::MaxLanes(DRows()), HWY_ARCH_X86 ? kManySlices : kTileRows);
#endif

// The results for C tokens: those of token c belong at y[c] + row, where row is below `rows`.
struct Outputs {
  float* const* y;
  size_t rows;

#if HWY_HAVE_SCALABLE
  HWY_INLINE void Store(size_t row, VRows v) const {
    if (row < rows) hn::StoreN(v, DRows(), y[0] + row, rows - row);
  }
#else
  template <size_t C>
  HWY_INLINE void Store(size_t row, const VRows (&v)[C]) const {
    const DRows df;
    if (row + hn::Lanes(df) <= rows) {
      for (size_t c = 0; c < C; ++c) hn::StoreU(v[c], df, y[c] + row);
    } else if (row < rows) {
      for (size_t c = 0; c < C; ++c) hn::StoreN(v[c], df, y[c] + row, rows - row);
    }
  }
  // The same for T slices, from a copy: on AArch64 g++ would keep the array that these loops index
  // in memory, and store each total there whenever it changes.
  template <class Slice, size_t T, size_t C>
  HWY_INLINE void StoreSlices(const Slice* w, const VRows (&v)[T][C]) const {
    VRows copy[T][C];
    const auto fill = [&]<size_t... i>(std::index_sequence<i...>) HWY_ATTR {
      ((copy[i / C][i % C] = v[i / C][i % C]), ...);
    };
    fill(std::make_index_sequence<T * C>());
    for (size_t t = 0; t < T; ++t) Store(w[t].row, copy[t]);
  }
  // The results that are stored for token c.
  HWY_INLINE VRows Load(size_t row, size_t c) const {
    const DRows df;
    if (row + hn::Lanes(df) <= rows) return hn::LoadU(df, y[c] + row);
    return row < rows ? hn::LoadN(df, y[c] + row, rows - row) : hn::Zero(df);
  }
#endif
};

// The sum of the activations of a group.
template <class Format, size_t kGroupIndex>
HWY_INLINE VRows SumOf(const QuantizedBlock& x) {
  return hn::Set(DRows(), Format::kGroup == kQuantBlock ? x.sum : x.sums16[kGroupIndex]);
}

// Adds the products of one group of columns to totals: group kGroupIndex of the quantization block
// x[c][block] of each token c.
template <class Format, size_t kGroupIndex, size_t T, size_t C>
HWY_INLINE void AddGroup(const Format* w, const QuantizedBlock* const* x, size_t block,
#if HWY_HAVE_SCALABLE
                         VRows& total) {
  static_assert(T == 1 && C == 1);
  const QuantizedBlock& activations = x[0][block];
  const DRows df;
  const size_t g = block * (kQuantBlock / Format::kGroup) + kGroupIndex;
  const auto sum = SumGroup<Format, kGroupIndex>(*w, g, activations);
  const auto scale = hn::Mul(w->Scale(g), hn::Set(df, activations.scale));
  total = hn::MulAdd(hn::ConvertTo(df, sum), scale, total);
  if constexpr (Format::kHasOffsets) {
    total = hn::MulAdd(w->Offset(g), SumOf<Format, kGroupIndex>(activations), total);
  }
#else
                         VRows (&total)[T][C]) {
  const DRows df;
  const size_t g = block * (kQuantBlock / Format::kGroup) + kGroupIndex;
  GroupSums<T, C> sum;
  SumGroup<Format, kGroupIndex, T, C>(w, g, x, block, sum);
  VRows scale[T];
  for (size_t t = 0; t < T; ++t) scale[t] = w[t].Scale(g);
  for (size_t c = 0; c < C; ++c) {
    const auto x_scale = hn::Set(df, x[c][block].scale);
    for (size_t t = 0; t < T; ++t) {
      total[t][c] =
          hn::MulAdd(hn::ConvertTo(df, sum[t][c]), hn::Mul(scale[t], x_scale), total[t][c]);
    }
  }
  if constexpr (Format::kHasOffsets) {
    for (size_t t = 0; t < T; ++t) scale[t] = w[t].Offset(g);
    for (size_t c = 0; c < C; ++c) {
      const auto x_sum = SumOf<Format, kGroupIndex>(x[c][block]);
      for (size_t t = 0; t < T; ++t) total[t][c] = hn::MulAdd(scale[t], x_sum, total[t][c]);
    }
  }
#endif
}

// A kernel computes T slices of tiles for C tokens: Run<T, C>(slices, rows, cols, fetch, out),
// where rows[c] is token c's row of activations. It is fastest with kCols tokens at once. Scalable
// vectors cannot be array elements: with them T and C are 1. kChains is the least number of slices
// at once: 2 where the additions of one slice, which depend on each other, are too slow to keep up
// with memory.

template <class Format>
struct QuantizedKernel {
  using Slice = Format;
  using Activations = QuantizedRows;
  static constexpr size_t kCols = kQuantizedCols;
  static constexpr size_t kChains = 1;

  template <size_t T, size_t C, class Cols>
  static HWY_NOINLINE void Run(const Slice* w, const QuantizedBlock* const* x, Cols cols,
                               Prefetch fetch, const Outputs& out) {
    const size_t blocks = cols / kQuantBlock;
#if HWY_HAVE_SCALABLE
    auto total = hn::Zero(DRows());
#else
    VRows total[T][C];
    for (size_t t = 0; t < T; ++t) {
      for (size_t c = 0; c < C; ++c) total[t][c] = hn::Zero(DRows());
    }
#endif
    for (size_t b = 0; b < blocks; ++b) {
      constexpr size_t kGroups = kQuantBlock / Format::kGroup;
      if (fetch.IsDue(b)) {
        for (size_t t = 0; t < T; ++t) {
          for (size_t g = 0; g < kGroups; ++g) w[t].Fetch(b * kGroups + g, fetch);
        }
      }
      AddGroup<Format, 0, T, C>(w, x, b, total);
      if constexpr (kGroups == 2) AddGroup<Format, 1, T, C>(w, x, b, total);
    }
#if HWY_HAVE_SCALABLE
    out.Store(w[0].row, total);
#else
    if constexpr (kByLanes) {
      out.StoreSlices(w, total);
    } else {
      for (size_t t = 0; t < T; ++t) out.Store(w[t].row, total[t]);
    }
#endif
  }
};

// A slice as kernels without scales read it: from `data` on, with kTileRows elements per column.
template <class W>
struct PlainSlice {
  PlainSlice(const PackedMatrix& w, size_t index, size_t offset, size_t columns)
      : row(index * kTileRows + offset),
        data(reinterpret_cast<const W*>(w.tile(index)) + offset * columns),
        fetches(offset == 0) {}

  // What lies ahead of element i.
  HWY_INLINE void Fetch(size_t i, const Prefetch& fetch) const {
    if (fetches) fetch.Lines(reinterpret_cast<const uint8_t*>(data + i), 1);
  }

  size_t row;
  const W* data;
  bool fetches;  // whether it is a tile's first slice, which prefetches for all
};

// Unquantized weights of type W: one fused multiply-add per column.
template <class W>
struct FloatKernel {
  struct Slice : PlainSlice<W> {
    Slice(const PackedMatrix& w, size_t index, size_t offset)
        : PlainSlice<W>(w, index, offset, 1) {}
  };
  using Activations = ConstFloatRows;
  static constexpr size_t kCols = kFloatCols;
  static constexpr size_t kChains = 2;

  template <size_t T, size_t C, class Cols>
  static HWY_NOINLINE void Run(const Slice* w, const float* const* x, Cols cols, Prefetch fetch,
                               const Outputs& out) {
    const DRows df;
#if HWY_HAVE_SCALABLE
    static_assert(T == 1 && C == 1);
    auto total = hn::Zero(df);
    for (size_t k = 0; k < cols; ++k) {
      if (fetch.IsDue(k)) w[0].Fetch(k * kTileRows, fetch);
      total = hn::MulAdd(LoadFloat(df, w[0].data + k * kTileRows), hn::Set(df, x[0][k]), total);
    }
    out.Store(w[0].row, total);
#else
    VRows total[T][C];
    for (size_t t = 0; t < T; ++t) {
      for (size_t c = 0; c < C; ++c) total[t][c] = hn::Zero(df);
    }
    for (size_t k = 0; k < cols; ++k) {
      if (fetch.IsDue(k)) {
        for (size_t t = 0; t < T; ++t) w[t].Fetch(k * kTileRows, fetch);
      }
      VRows weights[T];
      for (size_t t = 0; t < T; ++t) weights[t] = LoadFloat(df, w[t].data + k * kTileRows);
      for (size_t c = 0; c < C; ++c) {
        const auto value = hn::Set(df, x[c][k]);
        for (size_t t = 0; t < T; ++t) total[t][c] = hn::MulAdd(weights[t], value, total[t][c]);
      }
    }
    for (size_t t = 0; t < T; ++t) out.Store(w[t].row, total[t]);
#endif
  }
};

// bfloat16 weights and activations, two columns at a time.
struct PairKernel {
  struct Slice : PlainSlice<uint16_t> {
    Slice(const PackedMatrix& w, size_t index, size_t offset) : PlainSlice(w, index, offset, 2) {}
  };
  using Activations = Bf16Rows;
  static constexpr size_t kCols = kPairCols;
  static constexpr size_t kChains = kDotBf16 ? 1 : 2;

  template <size_t T, size_t C, class Cols>
  static HWY_NOINLINE void Run(const Slice* w, const Bf16* const* x, Cols cols, Prefetch fetch,
                               const Outputs& out) {
    const size_t pairs = (cols + 1) / 2;
    if constexpr (kInChains) return RunChains<T, C>(w, x, pairs, fetch, out);
#if INLAY_USES_I8MM
    if constexpr (C % 2 == 0) return RunMatrices<T, C>(w, x, pairs, fetch, out);
#endif
    const DRows df;
    // Adds both products, the even column's first where the CPU target leaves the choice.
    const auto add = [&](auto weights, auto values, auto sum) HWY_ATTR {
      if constexpr (kDotBf16) {
        return AddProductsOfBf16(df, weights, values, sum);
      } else {
        return hn::MulAdd(Odd(weights), Odd(values), hn::MulAdd(Even(weights), Even(values), sum));
      }
    };
#if HWY_HAVE_SCALABLE
    static_assert(T == 1 && C == 1);
    auto total = hn::Zero(df);
    for (size_t k = 0; k < pairs; ++k) {
      if (fetch.IsDue(k)) w[0].Fetch(k * 2 * kTileRows, fetch);
      total = add(Load(w[0], k), Broadcast(x[0] + 2 * k), total);
    }
    out.Store(w[0].row, total);
#else
    VRows total[T][C];
    for (size_t t = 0; t < T; ++t) {
      for (size_t c = 0; c < C; ++c) total[t][c] = hn::Zero(df);
    }
    for (size_t k = 0; k < pairs; ++k) {
      if (fetch.IsDue(k)) {
        for (size_t t = 0; t < T; ++t) w[t].Fetch(k * 2 * kTileRows, fetch);
      }
      hn::Vec<DWords> weights[T];
      for (size_t t = 0; t < T; ++t) weights[t] = Load(w[t], k);
      for (size_t c = 0; c < C; ++c) {
        const auto values = Broadcast(x[c] + 2 * k);
        for (size_t t = 0; t < T; ++t) total[t][c] = add(weights[t], values, total[t][c]);
      }
    }
    for (size_t t = 0; t < T; ++t) out.Store(w[t].row, total[t]);
#endif
  }

 private:
  using DWords = hn::RebindToUnsigned<DRows>;
  // Whether products are added as AMX adds them, so that CPUs with AMX and without compute the
  // same. That needs two sums beside each total, and nearly all of 32 registers.
  static constexpr bool kInChains = HWY_TARGET == HWY_AVX3;

  // The columns of a pair, as float.
  static HWY_INLINE VRows Even(hn::Vec<DWords> pair) {
    return hn::BitCast(DRows(), hn::ShiftLeft<16>(pair));
  }
  static HWY_INLINE VRows Odd(hn::Vec<DWords> pair) {
    return hn::BitCast(DRows(), hn::And(pair, hn::Set(DWords(), 0xFFFF0000u)));
  }

#if !HWY_HAVE_SCALABLE
  // Adds the products of even and of odd columns, kBf16Chain at a time, each from 0, and then both
  // sums to the totals.
  template <size_t T, size_t C>
  static HWY_INLINE void RunChains(const Slice* w, const Bf16* const* x, size_t pairs,
                                   Prefetch fetch, const Outputs& out) {
    const DRows df;
    VRows total[T][C];
    for (size_t t = 0; t < T; ++t) {
      for (size_t c = 0; c < C; ++c) total[t][c] = hn::Zero(df);
    }
    for (size_t k = 0; k < pairs;) {
      VRows even[T][C], odd[T][C];
      for (size_t t = 0; t < T; ++t) {
        for (size_t c = 0; c < C; ++c) even[t][c] = odd[t][c] = hn::Zero(df);
      }
      for (const size_t end = std::min(k + kBf16Chain / 2, pairs); k < end; ++k) {
        VRows even_weights[T], odd_weights[T];
        const bool fetches = fetch.IsDue(k);
        for (size_t t = 0; t < T; ++t) {
          if (fetches) w[t].Fetch(k * 2 * kTileRows, fetch);
          const auto weights = Load(w[t], k);
          even_weights[t] = Even(weights);
          odd_weights[t] = Odd(weights);
        }
        for (size_t c = 0; c < C; ++c) {
          const auto values = Broadcast(x[c] + 2 * k);
          const auto even_value = Even(values), odd_value = Odd(values);
          for (size_t t = 0; t < T; ++t) {
            even[t][c] = hn::MulAdd(even_weights[t], even_value, even[t][c]);
            odd[t][c] = hn::MulAdd(odd_weights[t], odd_value, odd[t][c]);
          }
        }
      }
      for (size_t t = 0; t < T; ++t) {
        for (size_t c = 0; c < C; ++c) {
          total[t][c] = hn::Add(total[t][c], hn::Add(even[t][c], odd[t][c]));
        }
      }
    }
    for (size_t t = 0; t < T; ++t) out.Store(w[t].row, total[t]);
  }
#endif

  // Two columns of the slice's rows, and of a token.
  static HWY_INLINE hn::Vec<DWords> Load(const Slice& w, size_t pair) {
    return hn::LoadU(DWords(), reinterpret_cast<const uint32_t*>(w.data + pair * 2 * kTileRows));
  }
  static HWY_INLINE hn::Vec<DWords> Broadcast(const Bf16* x) {
    return hn::BitCast(DWords(), Broadcast4(x));
  }

#if INLAY_USES_I8MM
  // For two tokens at a time, four columns with one instruction, as AddMatrixGroup does. The totals
  // are rearranged once, at the end.
  template <size_t T, size_t C>
  static HWY_INLINE void RunMatrices(const Slice* w, const Bf16* const* x, size_t pairs,
                                     Prefetch fetch, const Outputs& out) {
    constexpr size_t kTokenPairs = C / 2;
    const DRows df;
    const DWords du;
    VRows low[T][kTokenPairs], high[T][kTokenPairs];  // of a slice's rows 0 and 1, and 2 and 3
    for (size_t t = 0; t < T; ++t) {
      for (size_t p = 0; p < kTokenPairs; ++p) low[t][p] = high[t][p] = hn::Zero(df);
    }
    size_t k = 0;
    for (; k + 2 <= pairs; k += 2) {
      hn::Vec<DWords> rows01[T], rows23[T];
      const bool fetches = fetch.IsDue(k / 2);
      for (size_t t = 0; t < T; ++t) {
        if (fetches) {
          w[t].Fetch(k * 2 * kTileRows, fetch);
          w[t].Fetch((k + 1) * 2 * kTileRows, fetch);
        }
        const auto a = Load(w[t], k), b = Load(w[t], k + 1);
        rows01[t] = hn::InterleaveLower(du, a, b);
        rows23[t] = hn::InterleaveUpper(du, a, b);
      }
      for (size_t p = 0; p < kTokenPairs; ++p) {
        const auto values = [&](size_t c) HWY_ATTR {
          const hn::CappedTag<uint16_t, 4> d16;
          return hn::BitCast(hn::Half<DWords>(), hn::LoadU(d16, x[c] + 2 * k));
        };
        const auto both = hn::Combine(du, values(2 * p + 1), values(2 * p));
        for (size_t t = 0; t < T; ++t) low[t][p] = AddMatricesOfBf16(rows01[t], both, low[t][p]);
        for (size_t t = 0; t < T; ++t) high[t][p] = AddMatricesOfBf16(rows23[t], both, high[t][p]);
      }
    }
    // An odd last pair of columns is one more addition, in this order of lanes, too.
    if (k < pairs) {
      for (size_t t = 0; t < T; ++t) {
        const auto weights = Load(w[t], k);
        for (size_t p = 0; p < kTokenPairs; ++p) {
          const auto both =
              hn::InterleaveLower(du, Broadcast(x[2 * p] + 2 * k), Broadcast(x[2 * p + 1] + 2 * k));
          const auto add = [&](auto rows, auto& sum)
                               HWY_ATTR { sum = AddProductsOfBf16(df, rows, both, sum); };
          add(hn::InterleaveLower(du, weights, weights), low[t][p]);
          add(hn::InterleaveUpper(du, weights, weights), high[t][p]);
        }
      }
    }
    for (size_t t = 0; t < T; ++t) {
      VRows total[C];
      for (size_t p = 0; p < kTokenPairs; ++p) {
        total[2 * p] = hn::ConcatEven(df, high[t][p], low[t][p]);
        total[2 * p + 1] = hn::ConcatOdd(df, high[t][p], low[t][p]);
      }
      out.Store(w[t].row, total);
    }
  }
#endif
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#endif  // toggling guard
