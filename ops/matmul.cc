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
// registers, and an activation is loaded once for both tiles. A single token needs more tiles at
// once, as the additions of one element depend on each other.
#if HWY_HAVE_SCALABLE
constexpr size_t kTiles = 1;
constexpr size_t kCols = 1;
#else
constexpr size_t kTiles = 2;
constexpr size_t kCols = HWY_TARGET <= HWY_AVX3 ? 6 : 3;
#endif

// The results for kCols tokens, of which token c is written to y[c] + row.
struct Outputs {
  float* const* y;
  size_t row;    // first output row
  size_t valid;  // output rows that exist from there on

  HWY_INLINE void Store(size_t c, size_t offset, VRows v) const {
    const DRows df;
    if (offset + hn::Lanes(df) <= valid) {
      hn::StoreU(v, df, y[c] + row + offset);
    } else if (offset < valid) {
      hn::StoreN(v, df, y[c] + row + offset, valid - offset);
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

// T tiles for C tokens. Vectors without a fixed size cannot be kept in arrays: there it is one
// each.
template <class Format, size_t T, size_t C>
HWY_NOINLINE void QuantizedTiles(const Format* w, const QuantizedBlock* const* x, size_t blocks,
                                 size_t tile_bytes, size_t offset, const Outputs& out) {
#if HWY_HAVE_SCALABLE
  auto total = hn::Zero(DRows());
#else
  VRows total[T][C];
  for (size_t t = 0; t < T; ++t) {
    for (size_t c = 0; c < C; ++c) total[t][c] = hn::Zero(DRows());
  }
#endif
  for (size_t b = 0; b < blocks; ++b) {
    if constexpr (Format::kFetches && C == 1) {
      for (size_t t = 0; t < T; ++t) w[t].FetchBlock(T * tile_bytes, b);
    }
    AddGroup<Format, 0, T, C>(w, x, b, total);
    if constexpr (Format::kGroup < kQuantBlock) AddGroup<Format, 1, T, C>(w, x, b, total);
  }
#if HWY_HAVE_SCALABLE
  out.Store(0, offset, total);
#else
  for (size_t t = 0; t < T; ++t) {
    for (size_t c = 0; c < C; ++c) out.Store(c, t * kTileRows + offset, total[t][c]);
  }
#endif
}

// Unquantized weights of type W: one fused multiply-add per column.
template <class W, size_t T, size_t C>
HWY_NOINLINE void FloatTiles(const W* const* w, const float* const* x, size_t cols, size_t offset,
                             const Outputs& out) {
  const DRows df;
#if HWY_HAVE_SCALABLE
  static_assert(T == 1 && C == 1);
  auto total = hn::Zero(df);
  for (size_t k = 0; k < cols; ++k) {
    total = hn::MulAdd(LoadFloat(df, w[0] + k * kTileRows + offset), hn::Set(df, x[0][k]), total);
  }
  out.Store(0, offset, total);
#else
  VRows total[T][C];
  for (size_t t = 0; t < T; ++t) {
    for (size_t c = 0; c < C; ++c) total[t][c] = hn::Zero(df);
  }
  for (size_t k = 0; k < cols; ++k) {
    VRows weights[T];
    for (size_t t = 0; t < T; ++t) weights[t] = LoadFloat(df, w[t] + k * kTileRows + offset);
    for (size_t c = 0; c < C; ++c) {
      const auto value = hn::Set(df, x[c][k]);
      for (size_t t = 0; t < T; ++t) total[t][c] = hn::MulAdd(weights[t], value, total[t][c]);
    }
  }
  for (size_t t = 0; t < T; ++t) {
    for (size_t c = 0; c < C; ++c) out.Store(c, t * kTileRows + offset, total[t][c]);
  }
#endif
}

// bfloat16 weights and activations, two columns at a time.
template <size_t T, size_t C>
HWY_NOINLINE void PairTiles(const uint16_t* const* w, const Bf16* const* x, size_t pairs,
                            size_t offset, const Outputs& out) {
  const DRows df;
  const hn::RebindToUnsigned<DRows> du;
  const auto load = [&](const uint16_t* p) HWY_ATTR {
    return hn::LoadU(du, reinterpret_cast<const uint32_t*>(p + 2 * offset));
  };
  // Adds both products, the even column's first where the CPU target leaves the choice. The Xeons
  // of AVX3_SPR have an instruction for both, but it runs at half the speed of two single ones.
  const auto add = [&](auto weights, auto values, auto sum) HWY_ATTR {
#if HWY_NATIVE_DOT_BF16 && HWY_TARGET != HWY_AVX3_SPR
    const hn::Repartition<hwy::bfloat16_t, DRows> d16;
    auto unused = hn::Zero(df);
    return hn::ReorderWidenMulAccumulate(df, hn::BitCast(d16, weights), hn::BitCast(d16, values),
                                         sum, unused);
#else
    const auto even = [&](auto v) HWY_ATTR { return hn::BitCast(df, hn::ShiftLeft<16>(v)); };
    const auto odd = [&](auto v)
                         HWY_ATTR { return hn::BitCast(df, hn::And(v, hn::Set(du, 0xFFFF0000u))); };
    return hn::MulAdd(odd(weights), odd(values), hn::MulAdd(even(weights), even(values), sum));
#endif
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
    total = add(load(w[0] + k * 2 * kTileRows), broadcast(x[0] + 2 * k), total);
  }
  out.Store(0, offset, total);
#else
  VRows total[T][C];
  for (size_t t = 0; t < T; ++t) {
    for (size_t c = 0; c < C; ++c) total[t][c] = hn::Zero(df);
  }
  for (size_t k = 0; k < pairs; ++k) {
    decltype(hn::Zero(du)) weights[T];
    for (size_t t = 0; t < T; ++t) weights[t] = load(w[t] + k * 2 * kTileRows);
    for (size_t c = 0; c < C; ++c) {
      const auto values = broadcast(x[c] + 2 * k);
      for (size_t t = 0; t < T; ++t) total[t][c] = add(weights[t], values, total[t][c]);
    }
  }
  for (size_t t = 0; t < T; ++t) {
    for (size_t c = 0; c < C; ++c) out.Store(c, t * kTileRows + offset, total[t][c]);
  }
#endif
}

// Calls run.operator()<C>(first token) so that each token is met once: kCols at a time while there
// are so many, then two, then one.
template <class Run>
HWY_INLINE void ForEachToken(size_t tokens, const Run& run) {
  size_t token = 0;
  for (; token + kCols <= tokens; token += kCols) run.template operator()<kCols>(token);
#if !HWY_HAVE_SCALABLE
  for (; token + 2 <= tokens; token += 2) run.template operator()<2>(token);
  for (; token < tokens; ++token) run.template operator()<1>(token);
#endif
}

// T tiles from `first` for all tokens, part by part of the tiles' rows. The tiles stay in the cache
// while the tokens pass.
template <class Format, size_t T>
void MultiplyQuantizedTiles(const MatMulTask& task, const QuantizedRows& x, size_t first) {
  const size_t row = first * kTileRows;
  for (size_t offset = 0; offset < kTileRows; offset += hn::Lanes(DRows())) {
    const auto with = [&]<size_t... t>(std::index_sequence<t...>) HWY_ATTR {
      const Format tiles[T] = {Format(*task.w, first + t, offset)...};
      ForEachToken(task.y.rows, [&]<size_t C>(size_t token) HWY_ATTR {
        const QuantizedBlock* rows[C];
        float* y[C];
        for (size_t c = 0; c < C; ++c) {
          rows[c] = x.Row(task.InputRow(token + c));
          y[c] = task.y.Row(token + c);
        }
        QuantizedTiles<Format, T, C>(tiles, rows, x.cols / kQuantBlock, task.w->tile_bytes(),
                                     offset, Outputs{y, row, task.w->rows() - row});
      });
    };
    with(std::make_index_sequence<T>());
  }
}

template <class W, size_t T>
void MultiplyFloatTiles(const MatMulTask& task, ConstFloatRows x, size_t first) {
  const size_t row = first * kTileRows;
  const W* tiles[T];
  for (size_t t = 0; t < T; ++t) tiles[t] = reinterpret_cast<const W*>(task.w->tile(first + t));
  for (size_t offset = 0; offset < kTileRows; offset += hn::Lanes(DRows())) {
    ForEachToken(task.y.rows, [&]<size_t C>(size_t token) HWY_ATTR {
      const float* rows[C];
      float* y[C];
      for (size_t c = 0; c < C; ++c) {
        rows[c] = x.Row(task.InputRow(token + c));
        y[c] = task.y.Row(token + c);
      }
      FloatTiles<W, T, C>(tiles, rows, x.cols, offset, Outputs{y, row, task.w->rows() - row});
    });
  }
}

template <size_t T>
void MultiplyPairTiles(const MatMulTask& task, const Bf16Rows& x, size_t first) {
  const size_t row = first * kTileRows;
  const uint16_t* tiles[T];
  for (size_t t = 0; t < T; ++t) {
    tiles[t] = reinterpret_cast<const uint16_t*>(task.w->tile(first + t));
  }
  for (size_t offset = 0; offset < kTileRows; offset += hn::Lanes(DRows())) {
    ForEachToken(task.y.rows, [&]<size_t C>(size_t token) HWY_ATTR {
      const Bf16* rows[C];
      float* y[C];
      for (size_t c = 0; c < C; ++c) {
        rows[c] = x.Row(task.InputRow(token + c));
        y[c] = task.y.Row(token + c);
      }
      PairTiles<T, C>(tiles, rows, x.stride / 2, offset, Outputs{y, row, task.w->rows() - row});
    });
  }
}

template <class Format>
void MultiplyQuantized(const MatMulTask& task, const QuantizedRows& x, size_t begin, size_t end) {
  size_t tile = begin;
  for (; tile + kTiles <= end; tile += kTiles)
    MultiplyQuantizedTiles<Format, kTiles>(task, x, tile);
  for (; tile < end; ++tile) MultiplyQuantizedTiles<Format, 1>(task, x, tile);
}

template <class W>
void MultiplyFloat(const MatMulTask& task, ConstFloatRows x, size_t begin, size_t end) {
  size_t tile = begin;
  for (; tile + kTiles <= end; tile += kTiles) MultiplyFloatTiles<W, kTiles>(task, x, tile);
  for (; tile < end; ++tile) MultiplyFloatTiles<W, 1>(task, x, tile);
}

void MultiplyPairs(const MatMulTask& task, const Bf16Rows& x, size_t begin, size_t end) {
  size_t tile = begin;
  for (; tile + kTiles <= end; tile += kTiles) MultiplyPairTiles<kTiles>(task, x, tile);
  for (; tile < end; ++tile) MultiplyPairTiles<1>(task, x, tile);
}

// The tiles [begin, end) of one task.
void MultiplyTiles(const MatMulTask& task, ConstFloatRows x, const Bf16Rows& halves,
                   const QuantizedRows& quantized, size_t begin, size_t end) {
  switch (task.w->format()) {
    case PackedFormat::kF32:
      return MultiplyFloat<float>(task, x, begin, end);
    case PackedFormat::kF16:
      return MultiplyFloat<hwy::float16_t>(task, x, begin, end);
    case PackedFormat::kBF16:
      return MultiplyPairs(task, halves, begin, end);
    case PackedFormat::kBytes32:
      return MultiplyQuantized<Bytes32>(task, quantized, begin, end);
    case PackedFormat::kNibbles32:
      return MultiplyQuantized<Nibbles32>(task, quantized, begin, end);
    case PackedFormat::kNibblesK:
      return MultiplyQuantized<NibblesK>(task, quantized, begin, end);
    case PackedFormat::kSixK:
      return MultiplyQuantized<SixK>(task, quantized, begin, end);
    case PackedFormat::kWide32:
      return MultiplyQuantized<Wide<32>>(task, quantized, begin, end);
    case PackedFormat::kWide16:
      return MultiplyQuantized<Wide<16>>(task, quantized, begin, end);
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
HWY_EXPORT(MultiplyTiles);

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
  const auto multiply = HWY_DYNAMIC_POINTER(MultiplyTiles);
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
