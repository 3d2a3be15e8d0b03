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
HWY_INLINE hn::Vec<hn::RepartitionToWide<hn::RepartitionToWide<hn::RebindToSigned<DQuads>>>>
Broadcast4(const int8_t* p) {
  int32_t word;
  hwy::CopyBytes<4>(p, &word);
  return hn::Set(DRowInts(), word);
}

HWY_INLINE hn::Vec<DRowInts> Dot4(VQuads w, hn::Vec<DRowInts> x, hn::Vec<DRowInts> sum) {
  const hn::RebindToSigned<DQuads> d8;
  return hn::SumOfMulQuadAccumulate(DRowInts(), w, hn::BitCast(d8, x), sum);
}

#if HWY_HAVE_SCALABLE

// One tile part and one token at a time: vectors without a fixed size cannot be kept in arrays.
template <class Format, size_t T, size_t C>
HWY_NOINLINE void QuantizedTiles(const Format* w, const QuantizedRows* x, size_t offset,
                                 const Outputs& out) {
  static_assert(T == 1 && C == 1);
  constexpr size_t kGroup = Format::kGroup;
  const DRows df;
  const DRowInts di;
  auto total = hn::Zero(df);
  for (size_t g = 0; g < x->cols / kGroup; ++g) {
    int32_t group_sum = 0;
    for (size_t i = 0; i < kGroup / kQuantSumGroup; ++i)
      group_sum += x->sums[g * (kGroup / kQuantSumGroup) + i];
    auto sum = hn::Set(di, -Format::kBias * group_sum);
    const int8_t* quants = x->quants + g * kGroup;
    const auto step = [&]<size_t s>() HWY_ATTR {
      VQuads a, b;
      w->template Step<s>(g, a, b);
      sum = Dot4(a, Broadcast4(quants + 8 * s), sum);
      sum = Dot4(b, Broadcast4(quants + 8 * s + 4), sum);
    };
    step.template operator()<0>();
    step.template operator()<1>();
    if constexpr (kGroup == 32) {
      step.template operator()<2>();
      step.template operator()<3>();
    }
    const auto scale = hn::Set(df, x->scales[g * kGroup / kQuantBlock]);
    total = hn::MulAdd(hn::ConvertTo(df, sum), hn::Mul(w->Scale(g), scale), total);
    if constexpr (Format::kHasOffsets) {
      total = hn::MulAdd(hn::Set(df, static_cast<float>(group_sum)), hn::Mul(w->Offset(g), scale),
                         total);
    }
  }
  out.Store(0, offset, total);
}

#else

template <class Format, size_t T, size_t C>
HWY_NOINLINE void QuantizedTiles(const Format* w, const QuantizedRows* x, size_t offset,
                                 const Outputs& out) {
  constexpr size_t kGroup = Format::kGroup;
  constexpr size_t kSums = kGroup / kQuantSumGroup;
  const DRows df;
  const DRowInts di;
  VRows total[T][C];
  for (size_t t = 0; t < T; ++t) {
    for (size_t c = 0; c < C; ++c) total[t][c] = hn::Zero(df);
  }
  const size_t groups = x[0].cols / kGroup;
  for (size_t g = 0; g < groups; ++g) {
    hn::Vec<DRowInts> sum[T][C];
    for (size_t c = 0; c < C; ++c) {
      int32_t group_sum = x[c].sums[g * kSums];
      if constexpr (kSums == 2) group_sum += x[c].sums[g * kSums + 1];
      for (size_t t = 0; t < T; ++t) sum[t][c] = hn::Set(di, -Format::kBias * group_sum);
    }
    const auto step = [&]<size_t s>() HWY_ATTR {
      VQuads a[T], b[T];
      for (size_t t = 0; t < T; ++t) w[t].template Step<s>(g, a[t], b[t]);
      for (size_t c = 0; c < C; ++c) {
        const auto xa = Broadcast4(x[c].quants + g * kGroup + 8 * s);
        for (size_t t = 0; t < T; ++t) sum[t][c] = Dot4(a[t], xa, sum[t][c]);
      }
      for (size_t c = 0; c < C; ++c) {
        const auto xb = Broadcast4(x[c].quants + g * kGroup + 8 * s + 4);
        for (size_t t = 0; t < T; ++t) sum[t][c] = Dot4(b[t], xb, sum[t][c]);
      }
    };
    step.template operator()<0>();
    step.template operator()<1>();
    if constexpr (kGroup == 32) {
      step.template operator()<2>();
      step.template operator()<3>();
    }
    VRows scale[T];
    for (size_t t = 0; t < T; ++t) scale[t] = w[t].Scale(g);
    for (size_t c = 0; c < C; ++c) {
      const auto x_scale = hn::Set(df, x[c].scales[g * kGroup / kQuantBlock]);
      for (size_t t = 0; t < T; ++t) {
        total[t][c] =
            hn::MulAdd(hn::ConvertTo(df, sum[t][c]), hn::Mul(scale[t], x_scale), total[t][c]);
      }
    }
    if constexpr (Format::kHasOffsets) {
      for (size_t t = 0; t < T; ++t) scale[t] = w[t].Offset(g);
      for (size_t c = 0; c < C; ++c) {
        int32_t group_sum = x[c].sums[g * kSums];
        if constexpr (kSums == 2) group_sum += x[c].sums[g * kSums + 1];
        const auto x_scale = hn::Set(df, x[c].scales[g * kGroup / kQuantBlock]);
        const auto x_sum = hn::Set(df, static_cast<float>(group_sum));
        for (size_t t = 0; t < T; ++t)
          total[t][c] = hn::MulAdd(x_sum, hn::Mul(scale[t], x_scale), total[t][c]);
      }
    }
  }
  for (size_t t = 0; t < T; ++t) {
    for (size_t c = 0; c < C; ++c) out.Store(c, t * kTileRows + offset, total[t][c]);
  }
}

#endif  // HWY_HAVE_SCALABLE

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

// T tiles from `first` for the tokens [token, token + C), part by part of the tiles' rows.
template <class Format, size_t T, size_t C>
void RunQuantized(const PackedMatrix& w, size_t first, const QuantizedRows& x, size_t token,
                  const Outputs& out) {
  QuantizedRows rows[C];
  for (size_t c = 0; c < C; ++c) rows[c] = x.Row(token + c);
  const size_t lanes = hn::Lanes(DRows());
  for (size_t offset = 0; offset < kTileRows; offset += lanes) {
    const auto run = [&]<size_t... t>(std::index_sequence<t...>) HWY_ATTR {
      const Format tiles[T] = {Format(w, first + t, offset)...};
      QuantizedTiles<Format, T, C>(tiles, rows, offset, out);
    };
    run(std::make_index_sequence<T>());
  }
}

template <class W, size_t T, size_t C>
void RunFloat(const PackedMatrix& w, size_t first, ConstFloatRows x, size_t token,
              const Outputs& out) {
  const W* tiles[T];
  for (size_t t = 0; t < T; ++t) tiles[t] = reinterpret_cast<const W*>(w.tile(first + t));
  const float* rows[C];
  for (size_t c = 0; c < C; ++c) rows[c] = x.Row(token + c);
  const size_t lanes = hn::Lanes(DRows());
  for (size_t offset = 0; offset < kTileRows; offset += lanes) {
    FloatTiles<W, T, C>(tiles, rows, x.cols, offset, out);
  }
}

// Calls run.operator()<T, C>(first tile, first token) so that all tiles in [begin, end) meet all
// tokens. The tokens are the inner loop: a pair of tiles stays in the cache while they pass.
template <class Run>
void ForEachTile(size_t begin, size_t end, size_t tokens, const Run& run) {
  for (size_t tile = begin; tile < end;) {
    const bool pair = end - tile >= kTiles;
    size_t token = 0;
    for (; token + kCols <= tokens; token += kCols) {
      if (pair) {
        run.template operator()<kTiles, kCols>(tile, token);
      } else {
        run.template operator()<1, kCols>(tile, token);
      }
    }
    for (; token < tokens; ++token) {
      if (pair) {
        run.template operator()<kTiles, 1>(tile, token);
      } else {
        run.template operator()<1, 1>(tile, token);
      }
    }
    tile += pair ? kTiles : 1;
  }
}

template <class Format>
void MultiplyQuantized(const MatMulTask& task, const QuantizedRows& x, size_t begin, size_t end) {
  ForEachTile(begin, end, task.y.rows, [&]<size_t T, size_t C>(size_t tile, size_t token) HWY_ATTR {
    float* y[C];
    for (size_t c = 0; c < C; ++c) y[c] = task.y.Row(token + c);
    const size_t row = tile * kTileRows;
    RunQuantized<Format, T, C>(*task.w, tile, x, token, Outputs{y, row, task.w->rows() - row});
  });
}

template <class W>
void MultiplyFloat(const MatMulTask& task, ConstFloatRows x, size_t begin, size_t end) {
  ForEachTile(begin, end, task.y.rows, [&]<size_t T, size_t C>(size_t tile, size_t token) HWY_ATTR {
    float* y[C];
    for (size_t c = 0; c < C; ++c) y[c] = task.y.Row(token + c);
    const size_t row = tile * kTileRows;
    RunFloat<W, T, C>(*task.w, tile, x, token, Outputs{y, row, task.w->rows() - row});
  });
}

// The tiles [begin, end) of one task.
void MultiplyTiles(const MatMulTask& task, ConstFloatRows x, const QuantizedRows& quantized,
                   size_t begin, size_t end) {
  switch (task.w->format()) {
    case PackedFormat::kF32:
      return MultiplyFloat<float>(task, x, begin, end);
    case PackedFormat::kF16:
      return MultiplyFloat<hwy::float16_t>(task, x, begin, end);
    case PackedFormat::kBF16:
      return MultiplyFloat<hwy::bfloat16_t>(task, x, begin, end);
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

// One row of activations.
void QuantizeOneRow(const float* x, QuantizedRows out) {
  const hn::CappedTag<float, kQuantSumGroup> df;
  const hn::RebindToSigned<decltype(df)> di;
  const hn::Rebind<int8_t, decltype(df)> d8;
  const size_t lanes = hn::Lanes(df);
  for (size_t block = 0; block < out.cols; block += kQuantBlock) {
    // Magnitudes order like their bits, and NaN above all: it makes the scale NaN.
    auto largest = hn::Zero(di);
    for (size_t i = 0; i < kQuantBlock; i += lanes) {
      const auto magnitude = hn::Abs(hn::LoadU(df, x + block + i));
      largest = hn::Max(largest, hn::BitCast(di, magnitude));
    }
    const float magnitude = std::bit_cast<float>(hn::ReduceMax(di, largest));
    // Below this the inverse might overflow; such a block counts as zeros.
    const float inverse = magnitude < 1e-30f ? 0.0f : 127.0f / magnitude;
    out.scales[block / kQuantBlock] = magnitude / 127.0f;
    for (size_t group = block; group < block + kQuantBlock; group += kQuantSumGroup) {
      auto sum = hn::Zero(di);
      for (size_t i = group; i < group + kQuantSumGroup; i += lanes) {
        const auto q = hn::NearestInt(hn::Mul(hn::LoadU(df, x + i), hn::Set(df, inverse)));
        hn::StoreU(hn::DemoteTo(d8, q), d8, out.quants + i);
        sum = hn::Add(sum, q);
      }
      out.sums[group / kQuantSumGroup] = hn::ReduceSum(di, sum);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace inlay {
namespace {

HWY_EXPORT(QuantizeOneRow);
HWY_EXPORT(MultiplyTiles);

bool IsQuantized(PackedFormat format) {
  return format != PackedFormat::kF32 && format != PackedFormat::kF16 &&
         format != PackedFormat::kBF16;
}

}  // namespace

void QuantizeRows(ConstFloatRows x, QuantizedRows out, ThreadPool& pool) {
  const auto work = [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t) HWY_DYNAMIC_DISPATCH(QuantizeOneRow)(x.Row(t), out.Row(t));
  };
  // A row or two are done before another thread has woken up.
  constexpr size_t kGrain = 4;
  pool.Run(x.rows, kGrain, std::cref(work));
}

QuantizedRows MatMulInput::Quantized(ThreadPool& pool) {
  if (quantized_) return rows_;
  const size_t elements = x_.rows * x_.cols;
  if (quants_.size() < elements) {
    quants_.resize(elements);
    scales_.resize(elements / kQuantBlock);
    sums_.resize(elements / kQuantSumGroup);
  }
  rows_ = {x_.cols, quants_.data(), scales_.data(), sums_.data()};
  QuantizeRows(x_, rows_, pool);
  quantized_ = true;
  return rows_;
}

void MatMul(const MatMulTask* tasks, size_t count, MatMulInput& x, ThreadPool& pool) {
  const ConstFloatRows floats = x.floats();
  if (floats.rows == 0) return;
  QuantizedRows quantized;
  size_t tiles = 0;
  for (size_t i = 0; i < count; ++i) {
    const MatMulTask& task = tasks[i];
    assert(task.w->cols() == floats.cols && task.y.cols == task.w->rows() &&
           task.y.rows == floats.rows);
    if (IsQuantized(task.w->format())) quantized = x.Quantized(pool);
    tiles += task.w->tiles();
  }
  // The tiles of all tasks in a row, shared out in equal parts.
  const auto work = [&](size_t begin, size_t end) {
    size_t first = 0;
    for (size_t i = 0; i < count && first < end; ++i) {
      const size_t last = first + tasks[i].w->tiles();
      if (begin < last) {
        HWY_DYNAMIC_DISPATCH(MultiplyTiles)
        (tasks[i], floats, quantized, std::max(begin, first) - first, std::min(end, last) - first);
      }
      first = last;
    }
  };
  pool.Run(tiles, 1, std::cref(work));
}

}  // namespace inlay
#endif  // HWY_ONCE
