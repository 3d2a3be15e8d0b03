#include "ops/matmul.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <functional>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/matmul.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"
#include "ops/packed_formats-inl.h"
#include "ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {

// What one call of a kernel computes: kTiles neighbouring tiles for kCols tokens. With 512-bit
// vectors 2 x 6 sums, as many totals, the weights of a step and an activation fit in the 32
// registers, and an activation is loaded once for both tiles.
#if HWY_HAVE_SCALABLE
constexpr size_t kTiles = 1;
constexpr size_t kCols = 1;
#else
constexpr size_t kTiles = 2;
constexpr size_t kCols = HWY_TARGET <= HWY_AVX3 ? 6 : 3;
// A few tokens, up to kCols, take all parts of one tile at once, so that memory is read in a line:
// that is as fast as memory allows, and two tiles at a time were 0.6 (Q4_0, one thread) to 0.9
// times as fast. Where a part's additions follow each other too slowly to keep up, a kernel has
// kChains = 2: so many parts at least.
constexpr size_t kParts = kTileRows / hn::MaxLanes(DRows());
// How far ahead, in bytes, what such a line leads to is fetched: the CPU follows it by itself, but
// only to the end of a page.
constexpr size_t kAhead = 4096;
#endif

// The results for some tokens, of which token c is written to y[c] + row; `rows` exist.
struct Outputs {
  float* const* y;
  size_t rows;

  HWY_INLINE void Store(size_t c, size_t row, VRows v) const {
    const DRows df;
    if (row + hn::Lanes(df) <= rows) {
      hn::StoreU(v, df, y[c] + row);
    } else if (row < rows) {
      hn::StoreN(v, df, y[c] + row, rows - row);
    }
  }
};

// The four bytes at p in every lane.
HWY_INLINE hn::Vec<DRowInts> Broadcast4(const void* p) {
  int32_t word;
  hwy::CopyBytes<4>(p, &word);
  return hn::Set(DRowInts(), word);
}

HWY_INLINE hn::Vec<DRowInts> Dot4(VQuads w, hn::Vec<DRowInts> x, hn::Vec<DRowInts> sum) {
  const hn::RebindToSigned<DQuads> d8;
  return hn::SumOfMulQuadAccumulate(DRowInts(), w, hn::BitCast(d8, x), sum);
}

// Where the sums of group `g` of a format start, which takes the format's bias off again.
template <class Format, size_t kHalf>
HWY_INLINE hn::Vec<DRowInts> StartOfSum(const QuantizedBlock& x) {
  if constexpr (Format::kBias == 0) return hn::Zero(DRowInts());
  constexpr int kShift = hwy::FloorLog2(-QuantizedBlock::kCorrection / std::max(1, Format::kBias));
  const int32_t* correction =
      Format::kGroup == kQuantBlock ? &x.correction : &x.half_corrections[kHalf];
  return hn::ShiftRight<kShift>(Broadcast4(correction));
}

// The sum of the activations of a group.
template <class Format, size_t kHalf>
HWY_INLINE VRows SumOf(const QuantizedBlock& x) {
  return hn::Set(DRows(), Format::kGroup == kQuantBlock ? x.sum : x.half_sums[kHalf]);
}

// Adds the products of one group of columns to totals: group kHalf of the block x[c][block] of each
// token c.
template <class Format, size_t kHalf, size_t T, size_t C>
HWY_INLINE void AddGroup(const Format* w, const QuantizedBlock* const* x, size_t block,
#if HWY_HAVE_SCALABLE
                         VRows& total) {
  static_assert(T == 1 && C == 1);
  const QuantizedBlock& activations = x[0][block];
  const DRows df;
  const size_t g = block * (kQuantBlock / Format::kGroup) + kHalf;
  auto sum = StartOfSum<Format, kHalf>(activations);
  const int8_t* quants = activations.quants + kHalf * Format::kGroup;
  const auto step = [&]<size_t s>() HWY_ATTR {
    VQuads a, b;
    w->template Step<s>(g, a, b);
    sum = Dot4(a, Broadcast4(quants + 8 * s), sum);
    sum = Dot4(b, Broadcast4(quants + 8 * s + 4), sum);
  };
  step.template operator()<0>();
  step.template operator()<1>();
  if constexpr (Format::kGroup == 32) {
    step.template operator()<2>();
    step.template operator()<3>();
  }
  const auto scale = hn::Mul(w->Scale(g), hn::Set(df, activations.scale));
  total = hn::MulAdd(hn::ConvertTo(df, sum), scale, total);
  if constexpr (Format::kHasOffsets) {
    total = hn::MulAdd(w->Offset(g), SumOf<Format, kHalf>(activations), total);
  }
#else
                         VRows (&total)[T][C]) {
  const DRows df;
  const size_t g = block * (kQuantBlock / Format::kGroup) + kHalf;
  hn::Vec<DRowInts> sum[T][C];
  for (size_t c = 0; c < C; ++c) {
    const auto start = StartOfSum<Format, kHalf>(x[c][block]);
    for (size_t t = 0; t < T; ++t) sum[t][c] = start;
  }
  const auto step = [&]<size_t s>() HWY_ATTR {
    VQuads a[T], b[T];
    for (size_t t = 0; t < T; ++t) w[t].template Step<s>(g, a[t], b[t]);
    for (size_t c = 0; c < C; ++c) {
      const auto xa = Broadcast4(x[c][block].quants + kHalf * Format::kGroup + 8 * s);
      for (size_t t = 0; t < T; ++t) sum[t][c] = Dot4(a[t], xa, sum[t][c]);
    }
    for (size_t c = 0; c < C; ++c) {
      const auto xb = Broadcast4(x[c][block].quants + kHalf * Format::kGroup + 8 * s + 4);
      for (size_t t = 0; t < T; ++t) sum[t][c] = Dot4(b[t], xb, sum[t][c]);
    }
  };
  step.template operator()<0>();
  step.template operator()<1>();
  if constexpr (Format::kGroup == 32) {
    step.template operator()<2>();
    step.template operator()<3>();
  }
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
      const auto x_sum = SumOf<Format, kHalf>(x[c][block]);
      for (size_t t = 0; t < T; ++t) total[t][c] = hn::MulAdd(scale[t], x_sum, total[t][c]);
    }
  }
#endif
}

// A kernel computes T parts of tiles for C tokens: Run<T, C>(parts, rows, out), where rows[c] is
// token c's row of activations. Vectors without a fixed size cannot be kept in arrays: there it is
// one each.

template <class Format>
struct QuantizedKernel {
  using Part = Format;
  using Activations = QuantizedRows;
  static constexpr size_t kChains = 1;

  template <size_t T, size_t C>
  static HWY_NOINLINE void Run(const Part* w, const QuantizedBlock* const* x, size_t cols,
                               size_t ahead, const Outputs& out) {
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
      if (ahead != 0) {
        for (size_t t = 0; t < T; ++t) {
          for (size_t g = 0; g < kGroups; ++g) w[t].Fetch(b * kGroups + g, ahead);
        }
      }
      AddGroup<Format, 0, T, C>(w, x, b, total);
      if constexpr (kGroups == 2) AddGroup<Format, 1, T, C>(w, x, b, total);
    }
#if HWY_HAVE_SCALABLE
    out.Store(0, w[0].row, total);
#else
    for (size_t t = 0; t < T; ++t) {
      for (size_t c = 0; c < C; ++c) out.Store(c, w[t].row, total[t][c]);
    }
#endif
  }
};

// What kernels without scales read of a tile: from `data` on, as many elements a column as rows.
template <class W>
struct PlainPart {
  PlainPart(const PackedMatrix& w, size_t index, size_t offset, size_t columns)
      : row(index * kTileRows + offset),
        data(reinterpret_cast<const W*>(w.tile(index)) + offset * columns),
        fetches(offset == 0) {}

  // What lies `ahead` bytes after element i.
  HWY_INLINE void Fetch(size_t i, size_t ahead) const {
    if (fetches) hwy::Prefetch(reinterpret_cast<const uint8_t*>(data + i) + ahead);
  }

  size_t row;
  const W* data;
  bool fetches;  // once for all parts of a tile
};

// Unquantized weights of type W: one fused multiply-add per column.
template <class W>
struct FloatKernel {
  struct Part : PlainPart<W> {
    Part(const PackedMatrix& w, size_t index, size_t offset) : PlainPart<W>(w, index, offset, 1) {}
  };
  using Activations = ConstFloatRows;
  static constexpr size_t kChains = 2;

  template <size_t T, size_t C>
  static HWY_NOINLINE void Run(const Part* w, const float* const* x, size_t cols, size_t ahead,
                               const Outputs& out) {
    const DRows df;
#if HWY_HAVE_SCALABLE
    static_assert(T == 1 && C == 1);
    auto total = hn::Zero(df);
    for (size_t k = 0; k < cols; ++k) {
      total = hn::MulAdd(LoadFloat(df, w[0].data + k * kTileRows), hn::Set(df, x[0][k]), total);
    }
    out.Store(0, w[0].row, total);
#else
    VRows total[T][C];
    for (size_t t = 0; t < T; ++t) {
      for (size_t c = 0; c < C; ++c) total[t][c] = hn::Zero(df);
    }
    for (size_t k = 0; k < cols; ++k) {
      if (ahead != 0) {
        for (size_t t = 0; t < T; ++t) w[t].Fetch(k * kTileRows, ahead);
      }
      VRows weights[T];
      for (size_t t = 0; t < T; ++t) weights[t] = LoadFloat(df, w[t].data + k * kTileRows);
      for (size_t c = 0; c < C; ++c) {
        const auto value = hn::Set(df, x[c][k]);
        for (size_t t = 0; t < T; ++t) total[t][c] = hn::MulAdd(weights[t], value, total[t][c]);
      }
    }
    for (size_t t = 0; t < T; ++t) {
      for (size_t c = 0; c < C; ++c) out.Store(c, w[t].row, total[t][c]);
    }
#endif
  }
};

// bfloat16 weights and activations, two columns at a time.
struct PairKernel {
  struct Part : PlainPart<uint16_t> {
    Part(const PackedMatrix& w, size_t index, size_t offset) : PlainPart(w, index, offset, 2) {}
  };
  using Activations = Bf16Rows;
  // The Xeons of AVX3_SPR have an instruction for two products, but it runs at half the speed of
  // two single ones.
  static constexpr bool kDot = HWY_NATIVE_DOT_BF16 && HWY_TARGET != HWY_AVX3_SPR;
  static constexpr size_t kChains = kDot ? 1 : 2;

  template <size_t T, size_t C>
  static HWY_NOINLINE void Run(const Part* w, const Bf16* const* x, size_t cols, size_t ahead,
                               const Outputs& out) {
    const size_t pairs = (cols + 1) / 2;
    const DRows df;
    const hn::RebindToUnsigned<DRows> du;
    const auto load = [&](const uint16_t* p)
                          HWY_ATTR { return hn::LoadU(du, reinterpret_cast<const uint32_t*>(p)); };
    // Adds both products, the even column's first where the CPU target leaves the choice.
    const auto add = [&](auto weights, auto values, auto sum) HWY_ATTR {
      if constexpr (kDot) {
        const hn::Repartition<hwy::bfloat16_t, DRows> d16;
        auto unused = hn::Zero(df);
        return hn::ReorderWidenMulAccumulate(df, hn::BitCast(d16, weights),
                                             hn::BitCast(d16, values), sum, unused);
      } else {
        const auto even = [&](auto v) HWY_ATTR { return hn::BitCast(df, hn::ShiftLeft<16>(v)); };
        const auto odd = [&](auto v) HWY_ATTR {
          return hn::BitCast(df, hn::And(v, hn::Set(du, 0xFFFF0000u)));
        };
        return hn::MulAdd(odd(weights), odd(values), hn::MulAdd(even(weights), even(values), sum));
      }
    };
    const auto broadcast = [&](const Bf16* p) HWY_ATTR {
      uint32_t word;
      hwy::CopyBytes<4>(p, &word);
      return hn::Set(du, word);
    };
#if HWY_HAVE_SCALABLE
    static_assert(T == 1 && C == 1);
    auto total = hn::Zero(df);
    for (size_t k = 0; k < pairs; ++k) {
      total = add(load(w[0].data + k * 2 * kTileRows), broadcast(x[0] + 2 * k), total);
    }
    out.Store(0, w[0].row, total);
#else
    VRows total[T][C];
    for (size_t t = 0; t < T; ++t) {
      for (size_t c = 0; c < C; ++c) total[t][c] = hn::Zero(df);
    }
    for (size_t k = 0; k < pairs; ++k) {
      if (ahead != 0) {
        for (size_t t = 0; t < T; ++t) w[t].Fetch(k * 2 * kTileRows, ahead);
      }
      decltype(hn::Zero(du)) weights[T];
      for (size_t t = 0; t < T; ++t) weights[t] = load(w[t].data + k * 2 * kTileRows);
      for (size_t c = 0; c < C; ++c) {
        const auto values = broadcast(x[c] + 2 * k);
        for (size_t t = 0; t < T; ++t) total[t][c] = add(weights[t], values, total[t][c]);
      }
    }
    for (size_t t = 0; t < T; ++t) {
      for (size_t c = 0; c < C; ++c) out.Store(c, w[t].row, total[t][c]);
    }
#endif
  }
};

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

// One row of activations; an odd number is followed by a zero.
void RoundOneRow(const float* x, size_t cols, Bf16* out) {
  const hn::ScalableTag<float> df;
  const hn::Rebind<uint16_t, decltype(df)> d16;
  const size_t lanes = hn::Lanes(df);
  size_t i = 0;
  for (; i + lanes <= cols; i += lanes) {
    hn::StoreU(Bf16FromFloat(df, hn::LoadU(df, x + i)), d16, out + i);
  }
  if (i < cols)
    hn::StoreN(Bf16FromFloat(df, hn::LoadN(df, x + i, cols - i)), d16, out + i, cols - i);
  if (cols % 2 != 0) out[cols] = 0;
}

// The sum of 16 signed bytes.
HWY_INLINE int32_t SumOf16(const int8_t* p) {
  const hn::CappedTag<int32_t, 4> di;
  const hn::Repartition<int8_t, decltype(di)> d8;
  const hn::Repartition<uint8_t, decltype(di)> du8;
  auto sum = hn::Zero(di);
  for (size_t i = 0; i < 16; i += hn::Lanes(d8)) {
    sum = hn::SumOfMulQuadAccumulate(di, hn::Set(du8, 1), hn::LoadU(d8, p + i), sum);
  }
  return hn::ReduceSum(di, sum);
}

// Rounds `count` <= kBatch blocks of activations, one step for all of them after the other, so that
// divisions are done by vectors and nothing waits for one block's largest value.
constexpr size_t kBatch = 16;
void QuantizeBlocks(const float* x, size_t count, QuantizedBlock* out) {
  const hn::CappedTag<float, kBatch> df;
  const hn::RebindToSigned<decltype(df)> di;
  const hn::Rebind<int8_t, decltype(df)> d8;
  const size_t lanes = hn::Lanes(df);
  HWY_ALIGN int32_t magnitudes[kBatch] = {};
  for (size_t b = 0; b < count; ++b) {
    // Magnitudes order like their bits, and NaN above all: it makes the scale NaN.
    auto largest = hn::Zero(di);
    for (size_t i = 0; i < kQuantBlock; i += lanes) {
      const auto v = hn::Abs(hn::LoadU(df, x + b * kQuantBlock + i));
      largest = hn::Max(largest, hn::BitCast(di, v));
    }
    magnitudes[b] = hn::ReduceMax(di, largest);
  }
  HWY_ALIGN float scales[kBatch];
  HWY_ALIGN float inverses[kBatch];
  for (size_t b = 0; b < kBatch; b += lanes) {
    const auto magnitude = hn::BitCast(df, hn::Load(di, magnitudes + b));
    const auto most = hn::Set(df, 127.0f);
    hn::Store(hn::Div(magnitude, most), df, scales + b);
    // Below this the inverse might overflow; such a block counts as zeros.
    const auto tiny = hn::Lt(magnitude, hn::Set(df, 1e-30f));
    hn::Store(hn::IfThenZeroElse(tiny, hn::Div(most, magnitude)), df, inverses + b);
  }
  for (size_t b = 0; b < count; ++b) {
    const auto inverse = hn::Set(df, inverses[b]);
    for (size_t i = 0; i < kQuantBlock; i += lanes) {
      const auto v = hn::Mul(hn::LoadU(df, x + b * kQuantBlock + i), inverse);
      hn::StoreU(hn::DemoteTo(d8, hn::NearestInt(v)), d8, out[b].quants + i);
    }
  }
  for (size_t b = 0; b < count; ++b) {
    QuantizedBlock& block = out[b];
    int32_t sums[2];
    for (size_t half = 0; half < 2; ++half) sums[half] = SumOf16(block.quants + 16 * half);
    block.scale = scales[b];
    block.sum = scales[b] * static_cast<float>(sums[0] + sums[1]);
    block.correction = QuantizedBlock::kCorrection * (sums[0] + sums[1]);
    for (size_t half = 0; half < 2; ++half) {
      block.half_sums[half] = scales[b] * static_cast<float>(sums[half]);
      block.half_corrections[half] = QuantizedBlock::kCorrection * sums[half];
    }
  }
}

// One row of activations.
void QuantizeOneRow(const float* x, size_t cols, QuantizedBlock* out) {
  const size_t blocks = cols / kQuantBlock;
  for (size_t b = 0; b < blocks; b += kBatch) {
    QuantizeBlocks(x + b * kQuantBlock, std::min(kBatch, blocks - b), out + b);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace inlay {
namespace {

HWY_EXPORT(QuantizeOneRow);
HWY_EXPORT(RoundOneRow);
HWY_EXPORT(MultiplyTask);

bool IsQuantized(PackedFormat format) {
  return format != PackedFormat::kF32 && format != PackedFormat::kF16 &&
         format != PackedFormat::kBF16;
}

}  // namespace

void MatMulInput::MakeQuantized() {
  const size_t blocks = x_.rows * x_.cols / kQuantBlock;
  if (blocks_.size() < blocks) blocks_.resize(blocks);
  quantized_ = {x_.cols, blocks_.data()};
}

void MatMulInput::MakeHalves() {
  const size_t stride = (x_.cols + 1) / 2 * 2;
  if (half_memory_.size() < x_.rows * stride) half_memory_.resize(x_.rows * stride);
  halves_ = {stride, half_memory_.data()};
}

void MatMulInput::Announce(ConstFloatRows x, std::initializer_list<const PackedMatrix*> matrices) {
  Set(x);
  for (const PackedMatrix* w : matrices) {
    if (w->format() == PackedFormat::kBF16) {
      MakeHalves();
    } else if (IsQuantized(w->format())) {
      MakeQuantized();
    }
  }
}

void MatMulInput::RoundRows(size_t begin, size_t end) const {
  const auto quantize_row = HWY_DYNAMIC_POINTER(QuantizeOneRow);
  const auto round_row = HWY_DYNAMIC_POINTER(RoundOneRow);
  for (size_t t = begin; t < end; ++t) {
    if (quantized_.blocks != nullptr) quantize_row(x_.Row(t), x_.cols, quantized_.Row(t));
    if (halves_.data != nullptr) round_row(x_.Row(t), x_.cols, halves_.Row(t));
  }
}

QuantizedRows MatMulInput::Quantized(ThreadPool& pool) {
  if (quantized_.blocks != nullptr) return quantized_;
  MakeQuantized();
  const auto quantize_row = HWY_DYNAMIC_POINTER(QuantizeOneRow);
  ForRows(pool, x_.rows, [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t) quantize_row(x_.Row(t), x_.cols, quantized_.Row(t));
  });
  return quantized_;
}

Bf16Rows MatMulInput::Halves(ThreadPool& pool) {
  if (halves_.data != nullptr) return halves_;
  MakeHalves();
  const auto round_row = HWY_DYNAMIC_POINTER(RoundOneRow);
  ForRows(pool, x_.rows, [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t) round_row(x_.Row(t), x_.cols, halves_.Row(t));
  });
  return halves_;
}

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
