// Floats as sums of two bfloat16, in the layouts that AMX multiplies (ops/cpu/amx_product.h).

// Compiled once per CPU target, hence the toggling guard.
#if defined(INLAY_OPS_BF16_PARTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INLAY_OPS_BF16_PARTS_INL_H_
#undef INLAY_OPS_BF16_PARTS_INL_H_
#else
#define INLAY_OPS_BF16_PARTS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "ops/cpu/amx_product.h"
#include "ops/simd-inl.h"

// All CPUs with AMX run this target, on which a vector is a row of an AMX register.
#if HWY_TARGET == HWY_AVX3_DL

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

namespace {

// A float is the sum of two bfloat16 up to 2^-16 of it, so that three products of them replace one
// of floats: the method of Henry, Tang and Heinecke, "Leveraging the bfloat16 Artificial
// Intelligence Datatype For Higher-Precision Computations", 2019.
using PartFloats = hn::FixedTag<float, kAmxSide>;
using PartWords = hn::FixedTag<uint32_t, kAmxSide>;
using VPartFloats = hn::Vec<PartFloats>;
using VPartWords = hn::Vec<PartWords>;

// The first part in the upper half of each word, rounded to nearest, and zeros.
HWY_INLINE VPartWords FirstPart(VPartFloats v) {
  const PartWords d;
  const auto rounded = hn::Add(hn::BitCast(d, v), hn::Set(d, 0x8000u));
  return hn::And(rounded, hn::Set(d, 0xFFFF0000u));
}

// What the first part leaves of a number. The upper half is the second part, rounded toward zero.
// Of a NaN that rounding turned into a number, as it does if all bits are ones, this is the NaN.
HWY_INLINE VPartWords SecondPart(VPartFloats v, VPartWords first) {
  return hn::BitCast(PartWords(), hn::Sub(v, hn::BitCast(PartFloats(), first)));
}

// The upper halves of two vectors as pairs.
HWY_INLINE VPartWords PairHalves(VPartWords even, VPartWords odd) {
  return hn::OrAnd(hn::ShiftRight<16>(even), odd, hn::Set(PartWords(), 0xFFFF0000u));
}

// Writes the parts of two vectors, in one part or two, to parts[i].
template <int kParts>
HWY_INLINE void SplitVectors(VPartFloats a, VPartFloats b, uint16_t* const* parts) {
  const hn::FixedTag<uint16_t, 2 * kAmxSide> d16;
  if constexpr (kParts == 1) {
    const PartFloats df;
    hn::Store(hn::Combine(d16, Bf16FromFloat(df, b), Bf16FromFloat(df, a)), d16, parts[0]);
  } else {
    const auto upper_halves = [&](VPartWords x, VPartWords y) HWY_ATTR {
      return hn::OrderedTruncate2To(d16, hn::ShiftRight<16>(x), hn::ShiftRight<16>(y));
    };
    const auto first_a = FirstPart(a), first_b = FirstPart(b);
    hn::Store(upper_halves(first_a, first_b), d16, parts[0]);
    hn::Store(upper_halves(SecondPart(a, first_a), SecondPart(b, first_b)), d16, parts[1]);
  }
}

// Writes n floats as a row of the left operand of a product, in one part or two, and zeros up to
// `padded`, a multiple of kAmxChain.
template <int kParts>
HWY_INLINE void SplitRow(const float* from, size_t n, size_t padded, uint16_t* const* parts) {
  const PartFloats df;
  for (size_t i = 0; i < padded; i += 2 * kAmxSide) {
    const size_t m = i < n ? n - i : 0;
    const auto a = hn::LoadN(df, from + std::min(i, n), m);
    const auto b = m > kAmxSide ? hn::LoadN(df, from + i + kAmxSide, m - kAmxSide) : hn::Zero(df);
    uint16_t* to[] = {parts[0] + i, parts[1] + i};
    SplitVectors<kParts>(a, b, to);
  }
}

// How many parts represent an element of a type: exactly, or a float up to 2^-16 of it.
template <class T>
inline constexpr int kPartsOf =
    std::is_same_v<T, hwy::bfloat16_t> || std::is_same_v<T, int8_t> ? 1 : 2;

// Packs one or two tiles of columns as terms of the right operand of a product: row r of column c
// goes to parts[i][c / kAmxSide * stride + r / 2 * kAmxSide + c % kAmxSide].
template <class T>
class Packer {
 public:
  Packer(uint32_t* const* parts, size_t stride) : parts_{parts[0], parts[1]}, stride_(stride) {}

  // Packs the rows [begin, end) of `cols` columns, elements from[r * row_stride + c]; those outside
  // [first, last) are zeros, whatever memory holds, as are columns up to that of a whole tile.
  // `begin` and `end` are even. Unless `ahead` is 0, prefetches what lies that many bytes after
  // what is read. Returns false if it is to check and something is not finite, as what rounds to
  // infinity is not.
  template <bool kChecks>
  bool Pack(const T* from, size_t row_stride, size_t cols, size_t begin, size_t end, size_t first,
            size_t last, intptr_t ahead) {
    return cols > kAmxSide
               ? PackTiles<kChecks, 2>(from, row_stride, cols, begin, end, first, last, ahead)
               : PackTiles<kChecks, 1>(from, row_stride, cols, begin, end, first, last, ahead);
  }

 private:
  template <bool kChecks, int tiles>
  HWY_NOINLINE bool PackTiles(const T* from, size_t row_stride, size_t cols, size_t begin,
                              size_t end, size_t first, size_t last, intptr_t ahead) {
    const PartFloats df;
    const auto load = [&]<int t>(const T* p, bool exists) HWY_ATTR {
      if (!exists) return hn::Zero(df);
      const size_t n = cols - t * kAmxSide;
      if (n < kAmxSide) return LoadFloatN(df, p + t * kAmxSide, n);
      return LoadFloat(df, p + t * kAmxSide);
    };
    auto largest = hn::Zero(PartWords());
    size_t row = begin;
    // The first and last rows, and columns that are no whole tiles.
    const auto pack_some = [&](size_t stop) HWY_ATTR {
      for (; row < stop; row += 2) {
        const bool has_even = row >= first && row < last;
        const bool has_odd = row + 1 >= first && row + 1 < last;
        const T* even = from + row * row_stride;
        const T* odd = even + row_stride;
        PackPair<kChecks, 0>(load.template operator()<0>(even, has_even),
                             load.template operator()<0>(odd, has_odd), row, largest);
        if constexpr (tiles == 2) {
          PackPair<kChecks, 1>(load.template operator()<1>(even, has_even),
                               load.template operator()<1>(odd, has_odd), row, largest);
        }
      }
    };
    const size_t whole_end = cols % kAmxSide != 0 ? begin : std::min(end, last / 2 * 2);
    pack_some(std::min(std::max(begin, (first + 1) / 2 * 2), end));
    for (; row < whole_end; row += 2) {
      const T* even = from + row * row_stride;
      const T* odd = even + row_stride;
      if (ahead != 0) {
        FetchAhead(even, ahead, tiles * kAmxSide * sizeof(T));
        FetchAhead(odd, ahead, tiles * kAmxSide * sizeof(T));
      }
      PackPair<kChecks, 0>(LoadFloat(df, even), LoadFloat(df, odd), row, largest);
      if constexpr (tiles == 2) {
        PackPair<kChecks, 1>(LoadFloat(df, even + kAmxSide), LoadFloat(df, odd + kAmxSide), row,
                             largest);
      }
    }
    pack_some(end);
    return !kChecks || IsFinite(largest);
  }

  static HWY_INLINE void FetchAhead(const T* p, intptr_t ahead, size_t bytes) {
    const uintptr_t to = reinterpret_cast<uintptr_t>(p) + static_cast<uintptr_t>(ahead);
    for (size_t i = 0; i < bytes; i += 64) {
      __builtin_prefetch(reinterpret_cast<const char*>(to + i), /*rw=*/0, /*locality=*/2);
    }
  }

  // `largest` becomes the largest magnitude in each lane, of elements or, where a word has two of
  // them, of its halves.
  template <bool kChecks, int t>
  HWY_INLINE void PackPair(VPartFloats even, VPartFloats odd, size_t row, VPartWords& largest) {
    const PartWords d;
    const size_t to = t * stride_ + row / 2 * kAmxSide;
    if constexpr (kPartsOf<T> == 1) {
      const auto pair = PairHalves(hn::BitCast(d, even), hn::BitCast(d, odd));
      hn::Store(pair, d, parts_[0] + to);
      if constexpr (kChecks && std::is_same_v<T, hwy::bfloat16_t>) {
        const hn::Repartition<uint16_t, PartWords> d16;
        const auto magnitudes = hn::BitCast(d16, hn::And(pair, hn::Set(d, 0x7FFF7FFFu)));
        largest = hn::BitCast(d, hn::Max(hn::BitCast(d16, largest), magnitudes));
      }
    } else {
      const auto first_even = FirstPart(even), first_odd = FirstPart(odd);
      hn::Store(PairHalves(first_even, first_odd), d, parts_[0] + to);
      const auto second = PairHalves(SecondPart(even, first_even), SecondPart(odd, first_odd));
      hn::Store(second, d, parts_[1] + to);
      if constexpr (kChecks) {
        const auto magnitude = hn::Set(d, 0x7FFFFFFFu);
        largest = hn::Max(largest, hn::Max(hn::And(hn::BitCast(d, even), magnitude),
                                           hn::And(hn::BitCast(d, odd), magnitude)));
      }
    }
  }

  static bool IsFinite(VPartWords largest) {
    const PartWords d;
    if constexpr (kPartsOf<T> == 2) return hn::ReduceMax(d, largest) < 0x7F7F8000u;
    if constexpr (std::is_same_v<T, int8_t>) return true;
    const hn::Repartition<uint16_t, PartWords> d16;
    return hn::ReduceMax(d16, hn::BitCast(d16, largest)) < 0x7F80u;
  }

  uint32_t* const parts_[2];
  const size_t stride_;
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#endif  // HWY_TARGET

#endif  // toggling guard
