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
#include <cstring>
#include <iterator>
#include <new>
#include <type_traits>
#include <utility>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "ops/cpu/amx_tiles.h"
#include "ops/cpu/kernel_memory.h"
#include "ops/matmul/amx_operands-inl.h"
#include "ops/matmul/matmul_kernels-inl.h"
#include "ops/matmul/matmul_loops.h"
#include "ops/matmul/matmul_task.h"
#include "ops/matmul/matmul_tiles.h"
#include "ops/matmul/operand.h"

// All CPUs with AMX run this target, on which a vector holds all rows of a tile.
#if HWY_TARGET == HWY_AVX3_DL

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {
namespace {

// One AMX instruction multiplies a group of columns: the quants of 16 tokens by those of a tile. It
// adds these products exactly: as integers, or as floats that are integers below 2^24. The float
// operations that follow are those of QuantizedKernel, one for one, so the bits of the results are
// the same, too.
//
// Measured on the first CPU with AMX at hand (a Xeon of 4 GHz), in cycles for 16 tokens and a group
// of one tile, all in the first-level cache: a product takes 17, the store of its sums 17, one
// after the other; the loads of both operands take 9 each, beside them. Within some 480 cycles
// after an AMX instruction one port computes with float vectors of 512 bits instead of two, so that
// the 48 float operations of a group take 48. All together take 60 to 63 in the order of
// AmxKernel::Step, in which little waits for what was just begun, and 66 with each group's sums
// stored right after their product. As bfloat16, of which sums are floats already, 32 float
// operations are left, and all together take 43 to 48. But bfloat16 needs twice the memory and
// longer to be unpacked, so that on matrices it pays only for groups of 16 columns, which have the
// most float operations, and for many tokens.

// Quantization blocks of columns that are unpacked at once, and multiplied by all tokens from the
// second-level cache: all of them, so that no totals are stored and loaded again, or else a few, so
// that the copies of activations stay in the first-level cache. From 33 blocks on, 32 at once took
// 1.1 times as long.
constexpr size_t kMostBlocks = 32, kFewBlocks = 16;
// The most tokens of the kernels for few. With them 64 tokens took 0.7 to 1.07 times as long as
// with those for many, the least with weights that are bytes, and 96 took 0.77 to 1.15 times.
constexpr size_t kMostFewTokens = 6 * kAmxTokens;

// Bytes of activations, as much as the first-level cache holds, from which on two groups of tokens
// and more are multiplied in parts by this many tiles: with 32 conversations gemma-3-1b is 1.05
// times as fast so as with all activations for each tile, and with 16 of them 0.93 times.
constexpr size_t kNear = 48 << 10, kFewTiles = 8;

inline size_t BlocksAtOnce(const PackedMatrix& w) {
  const size_t all = w.cols() / kQuantBlock;
  return all <= kMostBlocks ? all : EvenPart(all, kFewBlocks);
}

// The kernel of one format; `Tiles` are the AMX instructions. For many tokens the weights of many
// tiles are unpacked, to the second-level cache, before each group of kAmxTokens is multiplied by
// all of them. For few tokens each part of a tile is unpacked right before it is multiplied by all
// of them, to the first-level cache, or not at all: bytes are multiplied where they are packed, and
// a second product removes their bias.
template <class Format, class Tiles, bool kIsForFew>
class AmxKernel {
  static constexpr bool kIsPacked = kIsForFew && std::is_same_v<Format, Bytes32>;
  static constexpr bool kIsBf16 = !kIsForFew && Format::kGroup == 16;
  using Group = UnpackedGroup<Format, kIsBf16>;
  using Groups = std::conditional_t<kIsPacked, PackedBytes, UnpackedGroups<Group>>;
  using Block = TokensBlock<kIsBf16>;
  static constexpr size_t kGroups = kQuantBlock / Format::kGroup;  // of a block
  // The groups for which there is memory. With fewer tiles at once each token's activations, which
  // come from the third-level cache, would be copied more often.
  static constexpr size_t kUnpacked = kAmxMemory / sizeof(Group);
  // The blocks for which there is memory, in the kernel for few tokens.
  static constexpr size_t kCopied = kAmxMemory / sizeof(Block);

 public:
  // After groups of kAmxTokens this many tokens or fewer are left to AVX3_DL, which multiplies them
  // at once. By the cycles above ten would cost there what 16 cost here. Of few tokens none are:
  // all weights would be read once more.
  static constexpr size_t kMostLeft = kIsForFew ? 0 : kQuantizedCols;

  // Whether there is memory for the activations of so many tokens, all of which the kernel for few
  // copies at once.
  static bool HasMemory(const PackedMatrix& w, size_t tokens) {
    return TokenGroups(tokens) * (w.cols() / kQuantBlock) <= kCopied;
  }

  // To be called before Run, with Tiles::Release() after the last Run.
  static void Configure() {
    constexpr size_t kWords = std::size(Group().words), kWordBytes = 4 * kTileRows;
    AmxShapes shapes;
    for (const int slot : {0, 1}) {
      shapes.Set(kSums + slot, kAmxTokens, 4 * kTileRows);
      shapes.Set(kQuants + slot, kAmxTokens, sizeof(Quant<kIsBf16>) * Format::kGroup);
      shapes.Set(kWeights + slot, kWords, kWordBytes);
    }
    if constexpr (kIsPacked) shapes.Set(kBias, kWords, kWordBytes);
    Tiles::Configure(shapes);
    if constexpr (kIsPacked) {
      int8_t bias[kWordBytes];
      std::memset(bias, -Format::kBias, sizeof(bias));
      Tiles::template Load<kBias>(bias, 0);
    }
  }

  // The tiles of `all` that Run takes at most.
  static size_t MostTiles(const PackedMatrix& w, size_t all) {
    return kIsForFew ? all : std::min(kAmxTiles, kUnpacked / (BlocksAtOnce(w) * kGroups));
  }

  // The tiles [begin, end) for the first `tokens` tokens, one at least; `memory` is KernelMemory().
  static void Run(const MatMulTask& task, const QuantizedRows& x, size_t tokens, size_t begin,
                  size_t end, std::byte* memory) {
    if constexpr (kIsForFew) {
      RunFew(task, x, tokens, begin, end, new (memory) Block[kCopied]);
    } else {
      RunUnpacked(task, x, tokens, begin, end, new (memory) Group[kUnpacked]);
    }
  }

 private:
  static size_t TokenGroups(size_t tokens) { return (tokens + kAmxTokens - 1) / kAmxTokens; }

  // Some blocks of columns of all tiles are unpacked, and multiplied by all tokens.
  static void RunUnpacked(const MatMulTask& task, const QuantizedRows& x, size_t tokens,
                          size_t begin, size_t end, Group* unpacked) {
    Block copied[kMostBlocks];
    const size_t all = task.w->cols() / kQuantBlock;
    const size_t most = BlocksAtOnce(*task.w);
    const auto groups = [&](size_t tile) { return unpacked + (tile - begin) * most * kGroups; };
    for (size_t block = 0; block < all; block += most) {
      const size_t count = std::min(most, all - block);
      for (size_t tile = begin; tile < end; ++tile) {
        const Format packed(*task.w, tile, 0);
        for (size_t i = 0; i < count * kGroups; ++i) {
          Unpack(packed, block * kGroups + i, groups(tile)[i]);
        }
      }
      WeightsAhead ahead(*task.w, block, most, begin, end, TokenGroups(tokens) * (end - begin));
      for (size_t token = 0; token < tokens; token += kAmxTokens) {
        Copy(task, x, tokens, token, block, count, copied);
        float* y[kAmxTokens];
        FindResults(task, tokens, token, y);
        for (size_t tile = begin; tile < end; ++tile) {
          ahead.Fetch();
          Add(Groups(groups(tile)), copied, count, Results(task, y, tile, block == 0), ahead);
        }
      }
    }
  }

  // All activations are copied, and multiplied by one tile after the other or, of several groups of
  // tokens that are not near, a part of them by that part of some tiles.
  static void RunFew(const MatMulTask& task, const QuantizedRows& x, size_t tokens, size_t begin,
                     size_t end, Block* copied) {
    [[maybe_unused]] Group unpacked[kIsPacked ? 1 : kMostBlocks * kGroups];
    const size_t all = task.w->cols() / kQuantBlock;
    const size_t token_groups = TokenGroups(tokens);
    const bool are_near = token_groups == 1 || token_groups * all * sizeof(Block) <= kNear;
    const size_t most = kIsPacked && are_near ? all : BlocksAtOnce(*task.w);
    const size_t tiles = are_near ? 1 : kFewTiles;
    float* y[kMostFewTokens / kAmxTokens][kAmxTokens];
    for (size_t group = 0; group < token_groups; ++group) {
      Copy(task, x, tokens, group * kAmxTokens, 0, all, copied + group * all);
      FindResults(task, tokens, group * kAmxTokens, y[group]);
    }
    for (size_t first = begin; first < end; first += tiles) {
      const size_t last = std::min(first + tiles, end);
      for (size_t block = 0; block < all; block += most) {
        const size_t count = std::min(most, all - block);
        WeightsAhead ahead(*task.w, block, most, first, last,
                           token_groups * (last - first) * count * kGroups);
        for (size_t tile = first; tile < last; ++tile) {
          const Format packed(*task.w, tile, 0);
          const auto groups = [&]() HWY_ATTR {
            if constexpr (kIsPacked) {
              return Groups(packed, block * kGroups);
            } else {
              for (size_t i = 0; i < count * kGroups; ++i) {
                Unpack(packed, block * kGroups + i, unpacked[i]);
              }
              return Groups(unpacked);
            }
          }();
          for (size_t group = 0; group < token_groups; ++group) {
            Add(groups, copied + group * all + block, count,
                Results(task, y[group], tile, block == 0), ahead);
          }
        }
      }
    }
  }

  // Copies the blocks [block, block + count) of the activations of kAmxTokens tokens from `token`
  // on. If fewer are left, the last one also fills the unused rows: its results are the same each
  // time.
  static void Copy(const MatMulTask& task, const QuantizedRows& x, size_t tokens, size_t token,
                   size_t block, size_t count, Block* to) {
    const auto row = [&](size_t c) {
      return x.Row(task.InputRow(std::min(token + c, tokens - 1))) + block;
    };
    for (size_t c = 0; c < kAmxTokens; ++c) {
      const QuantizedBlock* const from = row(c);
      const QuantizedBlock* const later = row(c + 3);
      for (size_t b = 0; b < count; ++b) {
        hwy::Prefetch(later + b);
        CopyBlock<Format>(from[b], c, to[b]);
      }
    }
  }

  static void FindResults(const MatMulTask& task, size_t tokens, size_t token,
                          float* (&y)[kAmxTokens]) {
    for (size_t c = 0; c < kAmxTokens; ++c) y[c] = task.y.Row(std::min(token + c, tokens - 1));
  }

  // AMX registers, of which two of each kind alternate. The last one holds minus the bias of packed
  // weights, as bytes.
  static constexpr int kSums = 0, kQuants = 2, kWeights = 4, kBias = 6;

  // Where the totals of a tile belong: token c's are at y[c] + row, and `rows` of them exist.
  struct Results {
    Results(const MatMulTask& task, float* const* y, size_t tile, bool are_new)
        : y(y),
          row(tile * kTileRows),
          rows(std::min(kTileRows, task.w->rows() - row)),
          are_new(are_new) {}

    float* const* y;
    size_t row, rows;
    bool are_new;  // whether totals start at 0 and not at what y holds
  };
  using Sums = std::conditional_t<kIsBf16, float, int32_t>[kAmxTokens][kTileRows];

  // Adds the products of some quantization blocks of columns to one tile's results.
  static void Add(Groups weights, const Block* x, size_t blocks, const Results& results,
                  WeightsAhead& ahead) {
    const DRows df;
    VRows total[kAmxTokens];
    Unrolled<kAmxTokens>([&]<size_t c>() INLAY_UNROLLED {
      total[c] =
          results.are_new ? hn::Zero(df) : hn::LoadN(df, results.y[c] + results.row, results.rows);
    });
    alignas(64) Sums sums[2];
    const size_t groups = blocks * kGroups;
    Load<0>(weights, x, 0);
    Multiply<0>();
    if (groups > 1) {
      Load<1>(weights, x, 1);
      Multiply<1>();
    }
    if (groups > 2) Load<0>(weights, x, 2);
    size_t g = 0;
    for (; g + 1 < groups; g += 2) {
      Step<0>(weights, x, g, groups, sums, total, ahead);
      Step<1>(weights, x, g + 1, groups, sums, total, ahead);
    }
    if (g < groups) {
      Step<0>(weights, x, g, groups, sums, total, ahead);
      AddSums<0>(weights, x, g, sums, total);
    } else {
      AddSums<1>(weights, x, g - 1, sums, total);
    }
    Unrolled<kAmxTokens>([&]<size_t c>() INLAY_UNROLLED {
      hn::StoreN(total[c], df, results.y[c] + results.row, results.rows);
    });
  }

  // Loads the operands of group g into the AMX registers of a slot.
  template <int slot>
  static HWY_INLINE void Load(const Groups& weights, const Block* x, size_t g) {
    const Quant<kIsBf16>* quants = x[g / kGroups].quants[0] + g % kGroups * Format::kGroup;
    Tiles::template Load<kQuants + slot>(quants, sizeof(x->quants[0]));
    Tiles::template Load<kWeights + slot>(weights.Words(g), 4 * kTileRows);
  }

  template <int slot>
  static HWY_INLINE void Multiply() {
    Tiles::template Zero<kSums + slot>();
    if constexpr (kIsBf16) {
      Tiles::template AddProductsOfBf16<kSums + slot, kQuants + slot, kWeights + slot>();
    } else if constexpr (kIsPacked) {
      Tiles::template AddProductsOfUnsigned<kSums + slot, kQuants + slot, kWeights + slot>();
      Tiles::template AddProducts<kSums + slot, kQuants + slot, kBias>();
    } else {
      Tiles::template AddProducts<kSums + slot, kQuants + slot, kWeights + slot>();
    }
  }

  // Stores the sums of group g, of this slot, then multiplies the operands of g + 2, which are
  // there, loads those of g + 3, and adds the sums of g - 1.
  template <int slot>
  static HWY_INLINE void Step(const Groups& weights, const Block* x, size_t g, size_t groups,
                              Sums (&sums)[2], VRows (&total)[kAmxTokens], WeightsAhead& ahead) {
    if constexpr (kIsForFew) ahead.Fetch();
    Tiles::template Store<kSums + slot>(sums[slot], sizeof(sums[slot][0]));
    if (g + 2 < groups) Multiply<slot>();
    if (g + 3 < groups) Load<1 - slot>(weights, x, g + 3);
    if (g > 0) AddSums<1 - slot>(weights, x, g - 1, sums, total);
  }

  static HWY_INLINE VRows Floats(const float* sums) { return hn::Load(DRows(), sums); }
  static HWY_INLINE VRows Floats(const int32_t* sums) {
    return hn::ConvertTo(DRows(), hn::Load(DRowInts(), sums));
  }

  // Adds the sums of a group, computed in this slot, to the totals, as AddGroup does.
  template <int slot>
  static HWY_INLINE void AddSums(const Groups& weights, const Block* x, size_t g,
                                 const Sums (&sums)[2], VRows (&total)[kAmxTokens]) {
    constexpr size_t kGroupIndex = kGroups == 2 ? slot : 0;
    const DRows df;
    const auto scale = weights.Scale(g);
    const Block& block = x[g / kGroups];
    Unrolled<kAmxTokens>([&]<size_t c>() INLAY_UNROLLED {
      const auto each = hn::Mul(scale, hn::Set(df, block.scales[c]));
      total[c] = hn::MulAdd(Floats(sums[slot][c]), each, total[c]);
    });
    if constexpr (Format::kHasOffsets) {
      const auto offset = weights.Offset(g);
      Unrolled<kAmxTokens>([&]<size_t c>() INLAY_UNROLLED {
        total[c] = hn::MulAdd(offset, hn::Set(df, block.sums[kGroupIndex][c]), total[c]);
      });
    }
  }
};

// The tiles [begin, end) for all tokens, by this kernel; `few` does the same for few tokens. Not
// inlined, because a sanitizer would give each format's blocks a place of their own on the caller's
// stack.
template <class Kernel, class Tiles>
HWY_NOINLINE void MultiplyByKernel(const MatMulTask& task, const QuantizedRows& x, size_t begin,
                                   size_t end, MultiplyTilesOf<QuantizedRows> few) {
  const size_t tokens = task.y.rows;
  const size_t rest = tokens % kAmxTokens;
  const size_t many = rest <= Kernel::kMostLeft ? tokens - rest : tokens;
  MatMulTask last = {task.w, task.y.Slice(many, tokens - many), task.x_rows};
  QuantizedRows last_x = x;
  if (task.x_rows == nullptr) {
    last_x.blocks = x.Row(many);
  } else {
    last.x_rows += many;
  }
  std::byte* const memory = KernelMemory();  // which may throw: nothing is configured yet
  Kernel::Configure();
  const size_t most = EvenPart(end - begin, Kernel::MostTiles(*task.w, end - begin));
  for (size_t tile = begin; tile < end; tile += most) {
    const size_t stop = std::min(tile + most, end);
    Kernel::Run(task, x, many, tile, stop, memory);
    if (many < tokens) few(last, last_x, tile, stop);
  }
  Tiles::Release();
}

// The same by the kernel for this format and number of tokens.
template <class Format, class Tiles>
void MultiplyByAmx(const MatMulTask& task, const QuantizedRows& x, size_t begin, size_t end,
                   MultiplyTilesOf<QuantizedRows> few) {
  const size_t tokens = task.y.rows;
  if (begin == end) return;
  if (!IsForAmx(task.w->format(), tokens)) return few(task, x, begin, end);
  using ForFew = AmxKernel<Format, Tiles, true>;
  if (tokens <= kMostFewTokens && ForFew::HasMemory(*task.w, tokens)) {
    return MultiplyByKernel<ForFew, Tiles>(task, x, begin, end, few);
  }
  MultiplyByKernel<AmxKernel<Format, Tiles, false>, Tiles>(task, x, begin, end, few);
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
