// The matmul's loops for Intel AMX: many tokens by a range of tiles of packed quantized weights.

// Compiled once per CPU target, hence the toggling guard.
#if defined(INLAY_OPS_MATMUL_MATMUL_AMX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INLAY_OPS_MATMUL_MATMUL_AMX_INL_H_
#undef INLAY_OPS_MATMUL_MATMUL_AMX_INL_H_
#else
#define INLAY_OPS_MATMUL_MATMUL_AMX_INL_H_
#endif

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "ops/cpu/amx_tiles.h"
#include "ops/matmul/matmul_kernels-inl.h"
#include "ops/matmul/matmul_task.h"
#include "ops/matmul/matmul_tiles.h"

// All CPUs with AMX run this target, on which a vector holds all rows of a tile.
#if HWY_TARGET == HWY_AVX3_DL

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {
namespace {

// One AMX instruction multiplies a group of columns: the quants of 16 tokens by those of a tile. It
// adds these products as integers, which is exact. The float operations that follow are those of
// QuantizedKernel, one for one, so the bits of the results are the same, too.
//
// Measured on the first CPU with AMX at hand (a Xeon of 3.9 GHz), in cycles for 16 tokens and a
// group of 32 columns of one tile, all in the first-level cache: the product alone 17, the store of
// its sums 16, loads of both operands 12, the float operations alone 29. Together they take 63
// to 67, since within some 480 cycles after an AMX instruction one port computes with float vectors
// of 512 bits instead of two: the 48 float operations then take 48. Without floats a product that
// follows TILEZERO takes 58, and a third of that after a load of zeros, but not with them. That
// sums are computed one, two or four groups ahead of their use makes no difference. AVX3_DL takes
// 96 by count. So what is left to gain is elsewhere: every operand should come from a cache that is
// near, in the form in which it is multiplied.

// Tiles, and quantization blocks of columns, that are unpacked at once and multiplied by all
// tokens, from the second-level cache: 350 to 420 KB, on the stack. Fewer tiles copy each token's
// activations, which come from the third-level cache, more often; fewer blocks load and store each
// total more often.
constexpr size_t kAmxBlocks = 32;
// After groups of kAmxTokens this many tokens or fewer are left to AVX3_DL, which multiplies them
// at once. By the cycles above ten would cost there what 16 cost here.
constexpr size_t kMostLeft = kQuantizedCols;

// Calls f.operator()<c>() for each of the kAmxTokens tokens. Unlike a loop, this leaves vectors in
// an array that is indexed by c in registers: g++ 12 keeps those of a loop in memory.
template <class F>
HWY_INLINE void ForTokens(const F& f) {
  const auto each = [&]<size_t... c>(std::index_sequence<c...>) HWY_ATTR
      __attribute__((always_inline)) {
    (f.template operator()<c>(), ...);
  };
  each(std::make_index_sequence<kAmxTokens>());
}

// A group of columns of one tile.
template <class Format>
struct UnpackedGroup {
  alignas(64) uint8_t quads[Format::kGroup / 4][4 * kTileRows];  // signed
  float scales[kTileRows];
  float offsets[kTileRows];  // where the format has them
};

// A quantization block of the activations of as many tokens as are multiplied at once.
struct TokensBlock {
  alignas(64) int8_t quants[kAmxTokens][kQuantBlock];
  float scales[kAmxTokens];
  float sums[2][kAmxTokens];  // of each group, where the weights have offsets
};

template <class Format>
HWY_INLINE void Unpack(const Format& w, size_t g, UnpackedGroup<Format>& group) {
  const DQuads d8;
  const auto bias = hn::Set(d8, static_cast<uint8_t>(Format::kBias));
  const auto step = [&]<size_t s>() HWY_ATTR {
    VQuads a, b;
    w.template Step<s>(g, a, b);
    hn::Store(hn::Sub(a, bias), d8, group.quads[2 * s]);
    hn::Store(hn::Sub(b, bias), d8, group.quads[2 * s + 1]);
  };
  step.template operator()<0>();
  step.template operator()<1>();
  if constexpr (Format::kGroup == 32) {
    step.template operator()<2>();
    step.template operator()<3>();
  }
  hn::StoreU(w.Scale(g), DRows(), group.scales);
  if constexpr (Format::kHasOffsets) hn::StoreU(w.Offset(g), DRows(), group.offsets);
}

// The kernel of one format; `Tiles` are the AMX instructions.
template <class Format, class Tiles>
class AmxKernel {
 public:
  // To be called before Run, with Tiles::Release() after the last Run.
  static void Configure() {
    AmxShapes shapes;
    for (const int slot : {0, 1}) {
      shapes.Set(kSums + slot, kAmxTokens, 4 * kTileRows);
      shapes.Set(kQuants + slot, kAmxTokens, Format::kGroup);
      shapes.Set(kWeights + slot, Format::kGroup / 4, 4 * kTileRows);
    }
    Tiles::Configure(shapes);
  }

  // The tiles [begin, end), kAmxTiles at most, for the first `tokens` tokens, one at least.
  static void Run(const MatMulTask& task, const QuantizedRows& x, size_t tokens, size_t begin,
                  size_t end) {
    UnpackedGroup<Format> weights[kAmxTiles][kAmxBlocks * kGroups];
    TokensBlock blocks[kAmxBlocks];
    const size_t all = task.w->cols() / kQuantBlock;
    for (size_t block = 0; block < all; block += kAmxBlocks) {
      const size_t count = std::min(kAmxBlocks, all - block);
      for (size_t tile = begin; tile < end; ++tile) {
        const Format packed(*task.w, tile, 0);
        for (size_t i = 0; i < count * kGroups; ++i) {
          Unpack(packed, block * kGroups + i, weights[tile - begin][i]);
        }
      }
      Ahead ahead(*task.w, block, begin, end, (tokens + kAmxTokens - 1) / kAmxTokens);
      for (size_t token = 0; token < tokens; token += kAmxTokens) {
        // If fewer than kAmxTokens are left, the last token also fills the unused rows: its results
        // are the same each time.
        float* y[kAmxTokens];
        for (size_t c = 0; c < kAmxTokens; ++c) {
          const size_t t = std::min(token + c, tokens - 1);
          y[c] = task.y.Row(t);
          const QuantizedBlock* row = x.Row(task.InputRow(t)) + block;
          const QuantizedBlock* later = x.Row(task.InputRow(std::min(t + 3, tokens - 1))) + block;
          for (size_t b = 0; b < count; ++b) {
            hwy::Prefetch(later + b);
            Copy(row[b], c, blocks[b]);
          }
        }
        for (size_t tile = begin; tile < end; ++tile) {
          const size_t row = tile * kTileRows;
          ahead.Fetch();
          Add(weights[tile - begin], blocks, count,
              Results{y, row, std::min(kTileRows, task.w->rows() - row), block == 0});
        }
      }
    }
  }

 private:
  static constexpr size_t kGroups = kQuantBlock / Format::kGroup;  // of a block
  // Prefetches into the second-level cache what is unpacked after the blocks from `block` on of the
  // tiles [begin, end): the next blocks of these tiles or, after the last ones, the first of the
  // next tiles. A share of it each time that one of these tiles is multiplied by one of `groups`
  // groups of tokens.
  class Ahead {
   public:
    Ahead(const PackedMatrix& w, size_t block, size_t begin, size_t end, size_t groups) {
      const size_t all = w.cols() / kQuantBlock;
      const bool is_last = block + kAmxBlocks >= all;
      const size_t next = is_last ? 0 : block + kAmxBlocks;
      const size_t first = is_last ? end : begin;
      const size_t tiles = std::min(end - begin, w.tiles() - first);
      if (tiles == 0) return;
      const size_t from = Offset(next);
      tile_ = w.tile(first) + from;
      tile_bytes_ = w.tile_bytes();
      bytes_ = Offset(std::min(next + kAmxBlocks, all)) - from;
      bytes_left_ = tiles * bytes_;
      step_ = (bytes_left_ / (groups * (end - begin)) + 127) / 64 * 64;
    }

    HWY_INLINE void Fetch() {
      size_t now = std::min(step_, bytes_left_);
      bytes_left_ -= now;
      while (now > 0) {
        const size_t some = std::min(now, bytes_ - at_);
        for (size_t i = 0; i < some; i += 64) __builtin_prefetch(tile_ + at_ + i, 0, 2);
        now -= some;
        at_ += some;
        if (at_ < bytes_) continue;
        at_ = 0;
        tile_ += tile_bytes_;
      }
    }

   private:
    // Where a quantization block of columns begins in a tile.
    static size_t Offset(size_t block) {
      return Format::kLayout.Group(block * kQuantBlock / Format::kLayout.cols);
    }

    const uint8_t* tile_ = nullptr;
    size_t tile_bytes_ = 0;
    size_t bytes_ = 0;  // of a tile
    size_t at_ = 0;
    size_t bytes_left_ = 0, step_ = 0;
  };

  // AMX registers, of which two of each kind alternate.
  static constexpr int kSums = 0, kQuants = 2, kWeights = 4;

  static HWY_INLINE void Copy(const QuantizedBlock& from, size_t token, TokensBlock& to) {
    const hn::FixedTag<int8_t, kQuantBlock> d8;
    hn::Store(hn::Load(d8, from.quants), d8, to.quants[token]);
    to.scales[token] = from.scale;
    if constexpr (Format::kHasOffsets) {
      for (size_t i = 0; i < kGroups; ++i) {
        to.sums[i][token] = kGroups == 1 ? from.sum : from.sums16[i];
      }
    }
  }

  // Where the totals of a tile belong: token c's are at y[c] + row, and `rows` of them exist.
  struct Results {
    float* const* y;
    size_t row, rows;
    bool are_new;  // whether totals start at 0 and not at what y holds
  };
  using Sums = int32_t[kAmxTokens][kTileRows];

  // Adds the products of some quantization blocks of columns to one tile's results.
  static void Add(const UnpackedGroup<Format>* weights, const TokensBlock* x, size_t blocks,
                  const Results& results) {
    const DRows df;
    VRows total[kAmxTokens];
    ForTokens([&]<size_t c>() HWY_ATTR __attribute__((always_inline)) {
      total[c] =
          results.are_new ? hn::Zero(df) : hn::LoadN(df, results.y[c] + results.row, results.rows);
    });
    alignas(64) Sums sums[2];
    const size_t groups = blocks * kGroups;
    Multiply<0>(weights, x, 0, sums[0]);
    for (size_t g = 0; g < groups; g += 2) {
      if (g + 1 < groups) Multiply<1>(weights, x, g + 1, sums[1]);
      AddSums<0>(weights[g], x[g / kGroups], sums[0], total);
      if (g + 1 == groups) break;
      if (g + 2 < groups) Multiply<0>(weights, x, g + 2, sums[0]);
      AddSums<1>(weights[g + 1], x[(g + 1) / kGroups], sums[1], total);
    }
    ForTokens([&]<size_t c>() HWY_ATTR __attribute__((always_inline)) {
      hn::StoreN(total[c], df, results.y[c] + results.row, results.rows);
    });
  }

  // Computes the sums of products of group g in the AMX registers of a slot.
  template <int slot>
  static HWY_INLINE void Multiply(const UnpackedGroup<Format>* weights, const TokensBlock* x,
                                  size_t g, Sums& sums) {
    const int8_t* quants = x[g / kGroups].quants[0] + g % kGroups * Format::kGroup;
    Tiles::template Load<kQuants + slot>(quants, kQuantBlock);
    Tiles::template Load<kWeights + slot>(weights[g].quads, sizeof(weights[g].quads[0]));
    Tiles::template Zero<kSums + slot>();
    Tiles::template AddProducts<kSums + slot, kQuants + slot, kWeights + slot>();
    Tiles::template Store<kSums + slot>(sums, sizeof(sums[0]));
  }

  // Adds the sums of a group, computed in this slot, to the totals, as AddGroup does.
  template <int slot>
  static HWY_INLINE void AddSums(const UnpackedGroup<Format>& weights, const TokensBlock& x,
                                 const Sums& sums, VRows (&total)[kAmxTokens]) {
    constexpr size_t kGroupIndex = kGroups == 2 ? slot : 0;
    const DRows df;
    const auto scale = hn::LoadU(df, weights.scales);
    ForTokens([&]<size_t c>() HWY_ATTR __attribute__((always_inline)) {
      const auto sum = hn::ConvertTo(df, hn::Load(DRowInts(), sums[c]));
      total[c] = hn::MulAdd(sum, hn::Mul(scale, hn::Set(df, x.scales[c])), total[c]);
    });
    if constexpr (Format::kHasOffsets) {
      const auto offset = hn::LoadU(df, weights.offsets);
      ForTokens([&]<size_t c>() HWY_ATTR __attribute__((always_inline)) {
        total[c] = hn::MulAdd(offset, hn::Set(df, x.sums[kGroupIndex][c]), total[c]);
      });
    }
  }
};

// The tiles [begin, end) for all tokens, by the AMX instructions of `Tiles`; `few` does the same
// for few tokens.
template <class Format, class Tiles>
void MultiplyByAmx(const MatMulTask& task, const QuantizedRows& x, size_t begin, size_t end,
                   MultiplyTilesOf<QuantizedRows> few) {
  const size_t tokens = task.y.rows;
  const size_t rest = tokens % kAmxTokens;
  const size_t many = rest <= kMostLeft ? tokens - rest : tokens;
  if (tokens < kLeastAmxTokens) return few(task, x, begin, end);
  MatMulTask last = {task.w, task.y.Slice(many, tokens - many), task.x_rows};
  QuantizedRows last_x = x;
  if (task.x_rows == nullptr) {
    last_x.blocks = x.Row(many);
  } else {
    last.x_rows += many;
  }
  using Kernel = AmxKernel<Format, Tiles>;
  Kernel::Configure();
  for (size_t tile = begin; tile < end; tile += kAmxTiles) {
    const size_t stop = std::min(tile + kAmxTiles, end);
    Kernel::Run(task, x, many, tile, stop);
    if (many < tokens) few(last, last_x, tile, stop);
  }
  Tiles::Release();
}

// The same for a matrix of any quantized format.
template <class Tiles>
void MultiplyByAmx(const MatMulTask& task, const QuantizedRows& x, size_t begin, size_t end) {
  const auto run = [&]<class Format>(MultiplyTilesOf<QuantizedRows> few)
                       HWY_ATTR { MultiplyByAmx<Format, Tiles>(task, x, begin, end, few); };
  const auto bytes = plain::ByteTiles(), nibbles = plain::NibbleTiles();
  const auto tables = plain::TableTiles();
  switch (task.w->format()) {
    case PackedFormat::kBytes32:
      return run.template operator()<Bytes32>(bytes);
    case PackedFormat::kNibbles32:
      return run.template operator()<Nibbles32>(nibbles);
    case PackedFormat::kFives32:
      return run.template operator()<Fives32>(nibbles);
    case PackedFormat::kFivesOffset32:
      return run.template operator()<FivesOffset32>(nibbles);
    case PackedFormat::kFivesK:
      return run.template operator()<FivesK>(nibbles);
    case PackedFormat::kNibblesK:
      return run.template operator()<NibblesK>(nibbles);
    case PackedFormat::kSixK:
      return run.template operator()<SixK>(nibbles);
    case PackedFormat::kNibblesOffset32:
      return run.template operator()<NibblesOffset32>(nibbles);
    case PackedFormat::kTableIq4Nl:
      return run.template operator()<TableIq4Nl>(tables);
    case PackedFormat::kTableMxfp4:
      return run.template operator()<TableMxfp4>(tables);
    case PackedFormat::kTableIq4Xs:
      return run.template operator()<TableIq4Xs>(tables);
    case PackedFormat::kTableIq3Xxs:
      return run.template operator()<TableIq3Xxs>(tables);
    case PackedFormat::kTableIq3S:
      return run.template operator()<TableIq3S>(tables);
    case PackedFormat::kTableIq2S:
      return run.template operator()<TableIq2S>(tables);
    case PackedFormat::kTableIq2Xxs:
      return run.template operator()<TableIq2Xxs>(tables);
    case PackedFormat::kTwosK:
      return run.template operator()<TwosK>(tables);
    case PackedFormat::kThreesK:
      return run.template operator()<ThreesK>(tables);
    default:
      assert(false);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#endif  // HWY_TARGET

#endif  // toggling guard
