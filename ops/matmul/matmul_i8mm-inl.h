// Products of many tokens with quantized weights as products of matrices, for Arm's I8MM.
//
// Its instruction multiplies two rows by two tokens, eight columns of each, which is twice what a
// product by a lane does. But it reads these columns of a row side by side, where a tile has them
// in two quads, and those of two tokens in one register; and its sums are of two rows by two
// tokens. To rearrange operands and sums for each product costs as much as the instruction gains.
// Here it is done once for many products: weights are unpacked for all tokens, activations paired
// for two tiles.

// Compiled once per CPU target, hence the toggling guard.
#if defined(INLAY_OPS_MATMUL_MATMUL_I8MM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INLAY_OPS_MATMUL_MATMUL_I8MM_INL_H_
#undef INLAY_OPS_MATMUL_MATMUL_I8MM_INL_H_
#else
#define INLAY_OPS_MATMUL_MATMUL_I8MM_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "ops/matmul/matmul_kernels-inl.h"
#include "ops/matmul/matmul_task.h"

#if INLAY_USES_I8MM

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {
namespace {

// The least number of tokens. 8 need 0.96 (Q8_0) to 0.8 times (Q6_K) as many instructions as with
// products by a lane, 48 need 0.77 to 0.6 times as many; fewer do not pay for the unpacking.
constexpr size_t kMatrixTokens = 8;
// What is unpacked at once: this many columns of two tiles, the least that a thread gets. They are
// 20 to 32 KB, and the tokens' activations up to 7 KB, for a first-level cache of 64 KB. Between
// these columns and the next, totals are kept in the output.
constexpr size_t kPanelTiles = 2;
constexpr size_t kPanelCols = 512;
// Slices, and pairs of tokens, that are multiplied at once: 12 registers of sums and 12 of totals.
// The other 8 are four of weights and one or two of activations.
constexpr size_t kMatrixSlices = 2;
constexpr size_t kMatrixPairs = 3;

// A group of a slice's weights. Registers with rows 0 and 1 and with rows 2 and 3 alternate.
template <class Format>
struct UnpackedGroup {
  static constexpr size_t kSteps = Format::kGroup / 8;

  uint8_t rows[kSteps][2][16];                   // 8 columns of one row, 8 of the other
  float scales[Format::kHasOffsets ? 4 : 2][4];  // each row's twice; then the offsets
};

// The activations of a quantization block for two tokens. `scale`, `sums` and `starts` hold the
// numbers of {first, second, first, second} token.
template <class Format>
struct PairedBlock {
  static constexpr size_t kGroups = kQuantBlock / Format::kGroup;

  int8_t quants[kQuantBlock / 8][16];  // 8 of the one token, 8 of the other
  float scale[4];
  float sums[kGroups][4];      // where the format has offsets
  int32_t starts[kGroups][4];  // of the integer sums, where it has a bias
};

// An unpacked slice of a tile, with the `row` that Outputs::StoreSlices reads.
template <class Format>
struct UnpackedSlice {
  size_t row;
  const UnpackedGroup<Format>* groups;
};

template <class Format>
HWY_INLINE void UnpackGroup(const Format& w, size_t g, UnpackedGroup<Format>& to) {
  const DRowInts di;
  const DRows df;
  const auto step = [&]<size_t s>() HWY_ATTR {
    VQuads a, b;
    w.template Step<s>(g, a, b);
    const auto quads_a = hn::BitCast(di, a), quads_b = hn::BitCast(di, b);
    const auto store = [&](auto rows, uint8_t* p)
                           HWY_ATTR { hn::Store(hn::BitCast(DQuads(), rows), DQuads(), p); };
    store(hn::InterleaveLower(di, quads_a, quads_b), to.rows[s][0]);
    store(hn::InterleaveUpper(di, quads_a, quads_b), to.rows[s][1]);
  };
  ForSteps<Format>(step);
  const auto twice = [&](VRows v, float(*p)[4]) HWY_ATTR {
    hn::Store(hn::InterleaveLower(df, v, v), df, p[0]);
    hn::Store(hn::InterleaveUpper(df, v, v), df, p[1]);
  };
  twice(w.Scale(g), to.scales);
  if constexpr (Format::kHasOffsets) twice(w.Offset(g), to.scales + 2);
}

template <class Format>
HWY_INLINE void PairBlocks(const QuantizedBlock& a, const QuantizedBlock& b,
                           PairedBlock<Format>& to) {
  const DRows df;
  const DRowInts di;
  const hn::Repartition<int8_t, DRows> d8;
  const hn::Repartition<uint64_t, DRows> d64;
  for (size_t i = 0; i < kQuantBlock; i += 16) {
    const auto of_a = hn::BitCast(d64, hn::LoadU(d8, a.quants + i));
    const auto of_b = hn::BitCast(d64, hn::LoadU(d8, b.quants + i));
    hn::Store(hn::BitCast(d8, hn::InterleaveLower(d64, of_a, of_b)), d8, to.quants[i / 8]);
    hn::Store(hn::BitCast(d8, hn::InterleaveUpper(d64, of_a, of_b)), d8, to.quants[i / 8 + 1]);
  }
  hn::Store(hn::InterleaveLower(df, hn::Set(df, a.scale), hn::Set(df, b.scale)), df, to.scale);
  const auto group = [&]<size_t kGroupIndex>() HWY_ATTR {
    if constexpr (Format::kHasOffsets) {
      hn::Store(
          hn::InterleaveLower(df, SumOf<Format, kGroupIndex>(a), SumOf<Format, kGroupIndex>(b)), df,
          to.sums[kGroupIndex]);
    }
    if constexpr (Format::kBias != 0) {
      hn::Store(hn::InterleaveLower(di, StartOfSum<Format, kGroupIndex>(a),
                                    StartOfSum<Format, kGroupIndex>(b)),
                di, to.starts[kGroupIndex]);
    }
  };
  group.template operator()<0>();
  if constexpr (PairedBlock<Format>::kGroups == 2) group.template operator()<1>();
}

// Sums of kMatrixSlices slices, rows 0 and 1 and rows 2 and 3 of each, by kPairs pairs of tokens.
constexpr size_t kMatrixRows = 2 * kMatrixSlices;
template <class D, size_t kPairs>
using MatrixSums = hn::Vec<D>[kMatrixRows][kPairs];

// Adds the products of group kGroupIndex of a quantization block. The integer sums are exact and
// the float operations are the same as elsewhere, so the bits are, too.
template <class Format, size_t kGroupIndex, size_t kPairs>
HWY_INLINE void AddMatrixGroup(const UnpackedSlice<Format>* w, const PairedBlock<Format>* const* x,
                               size_t block, MatrixSums<DRows, kPairs>& total) {
  const DRows df;
  const DRowInts di;
  const hn::Repartition<int8_t, DRows> d8;
  constexpr size_t kSteps = UnpackedGroup<Format>::kSteps;
  const size_t g = block * PairedBlock<Format>::kGroups + kGroupIndex;
  const UnpackedGroup<Format>* const group[kMatrixSlices] = {w[0].groups + g, w[1].groups + g};
  MatrixSums<DRowInts, kPairs> sum;
  for (size_t p = 0; p < kPairs; ++p) {
    const auto start =
        Format::kBias == 0 ? hn::Zero(di) : hn::Load(di, x[p][block].starts[kGroupIndex]);
    for (size_t i = 0; i < kMatrixRows; ++i) sum[i][p] = start;
  }
  for (size_t s = 0; s < kSteps; ++s) {
    VQuads rows[kMatrixRows];
    for (size_t i = 0; i < kMatrixRows; ++i) {
      rows[i] = hn::Load(DQuads(), group[i / 2]->rows[s][i % 2]);
    }
    for (size_t p = 0; p < kPairs; ++p) {
      const auto quants = hn::Load(d8, x[p][block].quants[kGroupIndex * kSteps + s]);
      for (size_t i = 0; i < kMatrixRows; ++i) {
        sum[i][p] = AddMatricesOfBytes(rows[i], quants, sum[i][p]);
      }
    }
  }
  for (size_t i = 0; i < kMatrixRows; ++i) {
    const auto scale = hn::Load(df, group[i / 2]->scales[i % 2]);
    for (size_t p = 0; p < kPairs; ++p) {
      const auto product = hn::Mul(scale, hn::Load(df, x[p][block].scale));
      total[i][p] = hn::MulAdd(hn::ConvertTo(df, sum[i][p]), product, total[i][p]);
    }
  }
  if constexpr (Format::kHasOffsets) {
    for (size_t i = 0; i < kMatrixRows; ++i) {
      const auto offset = hn::Load(df, group[i / 2]->scales[2 + i % 2]);
      for (size_t p = 0; p < kPairs; ++p) {
        total[i][p] = hn::MulAdd(offset, hn::Load(df, x[p][block].sums[kGroupIndex]), total[i][p]);
      }
    }
  }
}

// Multiplies the slices `w` by kPairs pairs of tokens, and adds the products to what `out` holds
// unless these are the first columns.
template <class Format, size_t kPairs>
HWY_NOINLINE void RunMatrices(const UnpackedSlice<Format>* w, const PairedBlock<Format>* const* x,
                              size_t blocks, bool first, const Outputs& out) {
  const DRows df;
  VRows rows[kMatrixSlices][2 * kPairs];
  for (size_t t = 0; t < kMatrixSlices; ++t) {
    for (size_t c = 0; c < 2 * kPairs; ++c) {
      rows[t][c] = first ? hn::Zero(df) : out.Load(w[t].row, c);
    }
  }
  MatrixSums<DRows, kPairs> total;
  const auto enter = [&]<size_t t, size_t... p>(std::index_sequence<p...>) HWY_ATTR {
    ((total[2 * t][p] = hn::InterleaveLower(df, rows[t][2 * p], rows[t][2 * p + 1])), ...);
    ((total[2 * t + 1][p] = hn::InterleaveUpper(df, rows[t][2 * p], rows[t][2 * p + 1])), ...);
  };
  enter.template operator()<0>(std::make_index_sequence<kPairs>());
  enter.template operator()<1>(std::make_index_sequence<kPairs>());
  for (size_t b = 0; b < blocks; ++b) {
    AddMatrixGroup<Format, 0, kPairs>(w, x, b, total);
    if constexpr (PairedBlock<Format>::kGroups == 2) {
      AddMatrixGroup<Format, 1, kPairs>(w, x, b, total);
    }
  }
  const auto leave = [&]<size_t t, size_t... p>(std::index_sequence<p...>) HWY_ATTR {
    ((rows[t][2 * p] = hn::ConcatEven(df, total[2 * t + 1][p], total[2 * t][p])), ...);
    ((rows[t][2 * p + 1] = hn::ConcatOdd(df, total[2 * t + 1][p], total[2 * t][p])), ...);
  };
  leave.template operator()<0>(std::make_index_sequence<kPairs>());
  leave.template operator()<1>(std::make_index_sequence<kPairs>());
  out.StoreSlices(w, rows);
}

// Some columns of some tiles, and of some tokens.
template <class Format>
struct MatrixPanel {
  static constexpr size_t kSlices = kPanelTiles * (kTileRows / 4);
  static constexpr size_t kBlocks = kPanelCols / kQuantBlock;

  alignas(64) UnpackedGroup<Format> groups[kSlices][kPanelCols / Format::kGroup];
  alignas(64) PairedBlock<Format> pairs[kMatrixPairs][kBlocks];
  UnpackedSlice<Format> slices[kSlices];
};

// The tiles [begin, end) for all tokens.
template <class Format>
void MultiplyMatrices(const MatMulTask& task, const QuantizedRows& x, size_t begin, size_t end) {
  constexpr size_t kSlices = kTileRows / 4;  // of a tile
  const PackedMatrix& w = *task.w;
  const size_t tokens = task.y.rows;
  MatrixPanel<Format> panel;
  for (size_t tile = begin; tile < end; tile += kPanelTiles) {
    const size_t slices = std::min(kPanelTiles, end - tile) * kSlices;
    for (size_t col = 0; col < w.cols(); col += kPanelCols) {
      const size_t cols = std::min(kPanelCols, w.cols() - col);
      for (size_t i = 0; i < slices; ++i) {
        const Format slice(w, tile + i / kSlices, i % kSlices * 4);
        panel.slices[i] = {slice.row, panel.groups[i]};
        for (size_t g = 0; g < cols / Format::kGroup; ++g) {
          slice.Fetch(col / Format::kGroup + g, kAlongTile);
          UnpackGroup(slice, col / Format::kGroup + g, panel.groups[i][g]);
        }
      }
      const auto multiply = [&]<size_t kPairs>(size_t token) HWY_ATTR {
        float* y[2 * kPairs];
        const PairedBlock<Format>* pairs[kPairs];
        for (size_t p = 0; p < kPairs; ++p) {
          const QuantizedBlock* blocks[2];
          for (size_t i = 0; i < 2; ++i) {
            // An odd last token is paired with itself.
            const size_t t = std::min(token + 2 * p + i, tokens - 1);
            blocks[i] = x.Row(task.InputRow(t)) + col / kQuantBlock;
            y[2 * p + i] = task.y.Row(t);
          }
          for (size_t b = 0; b < cols / kQuantBlock; ++b) {
            PairBlocks(blocks[0][b], blocks[1][b], panel.pairs[p][b]);
          }
          pairs[p] = panel.pairs[p];
        }
        for (size_t i = 0; i < slices; i += kMatrixSlices) {
          RunMatrices<Format, kPairs>(panel.slices + i, pairs, cols / kQuantBlock, col == 0,
                                      Outputs{y, w.rows()});
        }
      };
      size_t token = 0;
      for (; token + 4 < tokens; token += 2 * kMatrixPairs) {
        multiply.template operator()<kMatrixPairs>(token);
      }
      if (token + 2 < tokens) {
        multiply.template operator()<2>(token);
      } else if (token < tokens) {
        multiply.template operator()<1>(token);
      }
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#endif  // INLAY_USES_I8MM

#endif  // toggling guard
