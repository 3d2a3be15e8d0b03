// The matmul's loops for x86 CPUs that multiply bytes in pairs: many tokens by tiles of quantized
// weights that are unpacked once for all of them.

// Compiled once per CPU target, hence the toggling guard.
#if defined(INLAY_OPS_MATMUL_MATMUL_UNPACKED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INLAY_OPS_MATMUL_MATMUL_UNPACKED_INL_H_
#undef INLAY_OPS_MATMUL_MATMUL_UNPACKED_INL_H_
#else
#define INLAY_OPS_MATMUL_MATMUL_UNPACKED_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

#include "hwy/highway.h"
#include "ops/cpu/kernel_memory.h"
#include "ops/matmul/matmul_kernels-inl.h"
#include "ops/matmul/matmul_loops.h"
#include "ops/matmul/matmul_task.h"
// After all headers of Highway.
#include "ops/cpu/extension-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {
namespace {

// An instruction multiplies unsigned bytes of weights by signed ones of activations and adds each
// two products in 16 bits. Where weights have few bits, the sums of several quads fit these 16
// bits, so that a quad takes two instructions. Weights that use all 8 bits are multiplied as 16-bit
// integers, whose products another instruction adds in 32 bits, so that a quad takes four; as bytes
// it would be four, too, of which three wait for the same two ports of a Zen 3.
//
// What bounds these loops is the number of registers, 16: the sums of two slices by six tokens, the
// weights, and an activation. So all else stays in memory: totals, and weights, which are unpacked,
// with their scales, before they are multiplied by all tokens. The sums are those of
// QuantizedKernel, and so are the float operations that follow.

// Whether weights are multiplied so, on targets with 16 registers.
constexpr bool kUnpacks = kInPairs && (HWY_TARGET & INLAY_UNPACKING_TARGETS) != 0;

#if HWY_ARCH_X86
// Makes the compiler compute v where it is computed in the source. Left to itself, g++ 12 orders
// sums and products so that a third of them are stored and loaded again for each quad.
template <class V>
HWY_INLINE void ComputeHere(V& v) {
  asm volatile("" : "+x"(v.raw));
}

// What decides how weights are multiplied once they are unpacked: formats with the same share code.
template <size_t kCols, int kFormatBias, size_t kFitInSum, bool kOffsets>
struct WordKind {
  static constexpr size_t kGroup = kCols;
  static constexpr int kBias = kFormatBias;
  static constexpr bool kHasOffsets = kOffsets;
  // Whether a word of four bytes holds two columns in 16 bits each, or a quad.
  static constexpr bool kIsWide = kBias == 128;
  static constexpr size_t kWords = kGroup / (kIsWide ? 2 : 4);  // of a row in a group
  // How many words' products can be added in a sum, at most all of the group.
  static constexpr size_t kFit = kIsWide ? kWords : kFitInSum;
};
template <class Format>
using WordKindOf =
    WordKind<Format::kGroup, Format::kBias,
             Format::kBias == 128 ? 0 : FitInPairs(Format::kMost, Format::kGroup / 4),
             Format::kHasOffsets>;

constexpr size_t kUnpackedSlices = 2;  // that are multiplied together
// In a call, at most. With sanitizers, which check each unrolled step, clang 19 takes four minutes
// to compile six tokens for one group of formats.
#ifdef INLAY_SANITIZED
constexpr size_t kUnpackedTokens = 2;
#else
constexpr size_t kUnpackedTokens = 6;
#endif
constexpr size_t kUnpackedBlocks = 32;  // quantization blocks of columns that are unpacked at once
// From so many tokens on unpacking pays. It takes longest where words are wide.
template <class Format>
constexpr size_t kLeastUnpackedTokens = WordKindOf<Format>::kIsWide ? kManyUnpackedTokens : 12;

// A group of columns of kUnpackedSlices slices.
template <class Kind>
struct GroupOfWords {
  static constexpr size_t kLanes = hn::MaxLanes(DRows());

  alignas(64) uint32_t words[Kind::kWords][kUnpackedSlices][kLanes];
  float scales[kUnpackedSlices][kLanes];
  float offsets[kUnpackedSlices][kLanes];  // where the format has them

  // Unpacks slice t from group g of w.
  template <class Format>
  HWY_INLINE void Unpack(const Format& w, size_t g, size_t t) {
    const hn::RebindToUnsigned<DRowInts> d;
    const auto store = [&](VQuads quads, size_t quad) HWY_ATTR {
      if constexpr (Kind::kIsWide) {
        // The bytes of even and of odd columns become 16-bit integers, and then pairs of both.
        const hn::Repartition<int16_t, DQuads> d16;
        const auto quants =
            hn::BitCast(d16, hn::Xor(quads, hn::Set(DQuads(), uint8_t{Format::kBias})));
        const auto even = hn::BitCast(d, hn::ShiftRight<8>(hn::ShiftLeft<8>(quants)));
        const auto odd = hn::BitCast(d, hn::ShiftRight<8>(quants));
        const auto low = hn::Set(d, 0xFFFF);
        hn::Store(hn::Or(hn::And(even, low), hn::ShiftLeft<16>(odd)), d, words[2 * quad][t]);
        hn::Store(hn::Or(hn::ShiftRight<16>(even), hn::AndNot(low, odd)), d,
                  words[2 * quad + 1][t]);
      } else {
        hn::Store(hn::BitCast(d, quads), d, words[quad][t]);
      }
    };
    const auto step = [&]<size_t s>() HWY_ATTR {
      VQuads a, b;
      w.template Step<s>(g, a, b);
      store(a, 2 * s);
      store(b, 2 * s + 1);
    };
    ForSteps<Format>(step);
    hn::Store(w.Scale(g), DRows(), scales[t]);
    if constexpr (Format::kHasOffsets) hn::Store(w.Offset(g), DRows(), offsets[t]);
  }
};

// C tokens: some blocks of columns of their activations, and their results.
template <class Kind, size_t C>
struct TokensOfWords {
  // The activations that word `word` of group kGroupIndex of a block is multiplied by.
  template <size_t kGroupIndex>
  HWY_INLINE hn::Vec<DRowInts> Broadcast(size_t c, size_t block, size_t word) const {
    if constexpr (Kind::kIsWide) {
      return Broadcast4(wide[c][block] + kGroupIndex * Kind::kGroup + 2 * word);
    } else {
      return Broadcast4(rows[c][block].quants + kGroupIndex * Kind::kGroup + 4 * word);
    }
  }
  // To be called first where words are wide.
  void Widen(size_t blocks) {
    const hn::CappedTag<int16_t, kQuantBlock> d16;
    const hn::Rebind<int8_t, decltype(d16)> d8;
    for (size_t c = 0; c < C; ++c) {
      for (size_t b = 0; b < blocks; ++b) {
        for (size_t i = 0; i < kQuantBlock; i += hn::Lanes(d16)) {
          const auto quants = hn::LoadU(d8, rows[c][b].quants + i);
          hn::Store(hn::PromoteTo(d16, quants), d16, wide[c][b] + i);
        }
      }
    }
  }

  const QuantizedBlock* rows[C];
  float* y[C];
  alignas(64) int16_t wide[Kind::kIsWide ? C : 1][kUnpackedBlocks][kQuantBlock];
};

// The products of words.
template <class Kind>
class WordsKernel {
 public:
  using Group = GroupOfWords<Kind>;
  static constexpr size_t kGroups = kQuantBlock / Kind::kGroup;  // of a block

  // Adds the products of `blocks` blocks of columns by C tokens to the results from `row` on, of
  // which there are `rows`, or to 0 if these are new.
  template <size_t C>
  static HWY_NOINLINE void Add(const Group* w, size_t blocks, const TokensOfWords<Kind, C>& tokens,
                               size_t row, size_t rows, bool are_new, WeightsAhead& ahead) {
    const DRows df;
    const Outputs out = {tokens.y, rows};
    alignas(64) float total[C][kSlices][Group::kLanes];
    for (size_t c = 0; c < C; ++c) {
      for (size_t t = 0; t < kSlices; ++t) {
        hn::Store(are_new ? hn::Zero(df) : out.Load(row + t * Group::kLanes, c), df, total[c][t]);
      }
    }
    for (size_t b = 0; b < blocks; ++b, w += kGroups) {
      ahead.Fetch();
      AddGroup<0, C>(w[0], tokens, b, total);
      if constexpr (kGroups == 2) AddGroup<1, C>(w[1], tokens, b, total);
    }
    for (size_t t = 0; t < kSlices; ++t) {
      VRows results[C];
      for (size_t c = 0; c < C; ++c) results[c] = hn::Load(df, total[c][t]);
      out.Store(row + t * Group::kLanes, results);
    }
  }

 private:
  static constexpr size_t kSlices = kUnpackedSlices;
  static constexpr size_t kFit = Kind::kFit;
  using DSums = std::conditional_t<Kind::kIsWide, DRowInts, DPairs>;

  template <size_t kGroupIndex, size_t C>
  static HWY_INLINE void AddGroup(const Group& w, const TokensOfWords<Kind, C>& tokens,
                                  size_t block, float (&total)[C][kSlices][Group::kLanes]) {
    const DSums ds;
    const DRowInts di;
    const DRows df;
    const auto multiply = [&](auto weights, auto quants) INLAY_UNROLLED {
      if constexpr (Kind::kIsWide) {
        return hn::WidenMulPairwiseAdd(ds, hn::BitCast(DPairs(), weights),
                                       hn::BitCast(DPairs(), quants));
      } else {
        const hn::RebindToSigned<DQuads> d8;
        return hn::SatWidenMulPairwiseAdd(ds, hn::BitCast(DQuads(), weights),
                                          hn::BitCast(d8, quants));
      }
    };
    hn::Vec<DSums> sums[kSlices][C];
    // The sums of earlier words, where those of all do not fit.
    alignas(64) int32_t earlier[C][kSlices][Group::kLanes];
    Unrolled<Kind::kWords>([&]<size_t word>() INLAY_UNROLLED {
      const hn::RebindToUnsigned<DRowInts> d32;
      hn::Vec<decltype(d32)> weights[kSlices];
      Unrolled<kSlices>([&]<size_t t>()
                            INLAY_UNROLLED { weights[t] = hn::Load(d32, w.words[word][t]); });
      Unrolled<C>([&]<size_t c>() INLAY_UNROLLED {
        const auto quants = tokens.template Broadcast<kGroupIndex>(c, block, word);
        Unrolled<kSlices>([&]<size_t t>() INLAY_UNROLLED {
          const auto products = multiply(weights[t], quants);
          sums[t][c] = word % kFit == 0 ? products : hn::Add(sums[t][c], products);
          ComputeHere(sums[t][c]);
        });
      });
      if constexpr (word % kFit == kFit - 1) {
        Unrolled<C>([&]<size_t c>() INLAY_UNROLLED {
          const QuantizedBlock& activations = tokens.rows[c][block];
          const auto start = StartOfSum<Kind, kGroupIndex>(activations);
          const auto x_scale = hn::Set(df, activations.scale);
          Unrolled<kSlices>([&]<size_t t>() INLAY_UNROLLED {
            const auto sum = Widened<(word >= kFit)>(sums[t][c], start, earlier[c][t]);
            if constexpr (word + 1 < Kind::kWords) {
              hn::Store(sum, di, earlier[c][t]);
            } else {
              auto result =
                  hn::MulAdd(hn::ConvertTo(df, sum), hn::Mul(hn::Load(df, w.scales[t]), x_scale),
                             hn::Load(df, total[c][t]));
              if constexpr (Kind::kHasOffsets) {
                result = hn::MulAdd(hn::Load(df, w.offsets[t]),
                                    SumOf<Kind, kGroupIndex>(activations), result);
              }
              hn::Store(result, df, total[c][t]);
            }
          });
        });
      }
    });
  }

  // The 32-bit sums of products up to some word, whose last kFit are in `sum`: with those of the
  // words before, or with what a group's sum starts with.
  template <bool kHasEarlier>
  static HWY_INLINE hn::Vec<DRowInts> Widened(hn::Vec<DSums> sum, hn::Vec<DRowInts> start,
                                              const int32_t* earlier) {
    if constexpr (Kind::kIsWide) {
      return sum;
    } else {
      const auto wide = hn::WidenMulPairwiseAdd(DRowInts(), sum, hn::Set(DSums(), 1));
      if constexpr (kHasEarlier) return hn::Add(wide, hn::Load(DRowInts(), earlier));
      return Kind::kBias == 0 ? wide : hn::Add(wide, start);
    }
  }
};

// The tiles [begin, end) for all tokens.
template <class Format>
void MultiplyUnpacked(const MatMulTask& task, const QuantizedRows& x, size_t begin, size_t end) {
  using Kind = WordKindOf<Format>;
  using Kernel = WordsKernel<Kind>;
  constexpr size_t kGroups = Kernel::kGroups;
  constexpr size_t kPartRows = kUnpackedSlices * hn::MaxLanes(DRows());
  // Of a tile. Targets that do not unpack compile this too, and with wider vectors it would be 0.
  constexpr size_t kParts = kUnpacks ? kTileRows / kPartRows : 1;
  using Parts = typename Kernel::Group[kParts][kUnpackedBlocks * kGroups];
  static_assert(kUnpackedTiles * sizeof(Parts) <= kUnpackedMemory);
  Parts* const unpacked = new (KernelMemory()) Parts[kUnpackedTiles];
  const size_t all = task.w->cols() / kQuantBlock;
  const size_t most = EvenPart(all, kUnpackedBlocks);
  const size_t calls = (task.y.rows + kUnpackedTokens - 1) / kUnpackedTokens;
  for (size_t tile = begin; tile < end; tile += kUnpackedTiles) {
    const size_t tiles = std::min(kUnpackedTiles, end - tile);
    for (size_t block = 0; block < all; block += most) {
      const size_t count = std::min(most, all - block);
      for (size_t slice = 0; slice < tiles * kParts * kUnpackedSlices; ++slice) {
        const size_t i = slice / (kParts * kUnpackedSlices), t = slice % kUnpackedSlices;
        const size_t part = slice / kUnpackedSlices % kParts;
        const Format packed(*task.w, tile + i, part * kPartRows + t * hn::MaxLanes(DRows()));
        for (size_t g = 0; g < count * kGroups; ++g) {
          unpacked[i][part][g].Unpack(packed, block * kGroups + g, t);
        }
      }
      WeightsAhead ahead(*task.w, block, most, tile, tile + tiles, calls * tiles * kParts * count);
      ForTokenCalls<kUnpackedTokens>(task.y.rows, [&]<size_t C>(size_t token, size_t) HWY_ATTR {
        TokensOfWords<Kind, C> tokens;
        for (size_t c = 0; c < C; ++c) {
          const size_t t = std::min(token + c, task.y.rows - 1);
          tokens.rows[c] = x.Row(task.InputRow(t)) + block;
          tokens.y[c] = task.y.Row(t);
        }
        if constexpr (Kind::kIsWide) tokens.Widen(count);
        for (size_t i = 0; i < tiles; ++i) {
          for (size_t part = 0; part < kParts; ++part) {
            Kernel::template Add<C>(unpacked[i][part], count, tokens,
                                    (tile + i) * kTileRows + part * kPartRows, task.w->rows(),
                                    /*are_new=*/block == 0, ahead);
          }
        }
      });
    }
  }
}
#endif  // HWY_ARCH_X86

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#endif  // toggling guard
