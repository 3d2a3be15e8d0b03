// What the matmul's loops for Intel AMX multiply: weights, unpacked or as they are packed, and
// copies of activations.

// Compiled once per CPU target, hence the toggling guard.
#if defined(INLAY_OPS_MATMUL_AMX_OPERANDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INLAY_OPS_MATMUL_AMX_OPERANDS_INL_H_
#undef INLAY_OPS_MATMUL_AMX_OPERANDS_INL_H_
#else
#define INLAY_OPS_MATMUL_AMX_OPERANDS_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "ops/matmul/matmul_tiles.h"
#include "ops/matmul/operand.h"
#include "ops/matmul/packed_formats-inl.h"

// All CPUs with AMX run this target, on which a vector holds all rows of a tile.
#if HWY_TARGET == HWY_AVX3_DL

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {
namespace {

// The operands of products: bytes or bfloat16.
template <bool kIsBf16>
using Quant = std::conditional_t<kIsBf16, Bf16, int8_t>;

// A group of columns of one tile.
template <class Format, bool kIsBf16>
struct UnpackedGroup {
  // Words of 2 columns of bfloat16, or 4 of bytes, of all rows, as AMX reads them.
  static constexpr size_t kColumns = sizeof(uint32_t) / sizeof(Quant<kIsBf16>);
  alignas(64) uint32_t words[Format::kGroup / kColumns][kTileRows];
  float scales[kTileRows];
  float offsets[kTileRows];  // where the format has them
};

// A quantization block of the activations of as many tokens as are multiplied at once.
template <bool kIsBf16>
struct TokensBlock {
  alignas(64) Quant<kIsBf16> quants[kAmxTokens][kQuantBlock];
  float scales[kAmxTokens];
  float sums[2][kAmxTokens];  // of each group, where the weights have offsets
};

// Converts each signed byte of four columns of all rows to bfloat16, which has eight bits of
// precision, and stores them as two words of each row.
HWY_INLINE void StoreAsBf16(VQuads quads, uint32_t (*words)[kTileRows]) {
  const DRowInts di;
  const hn::RebindToUnsigned<DRowInts> du;
  const auto column = [&](auto shifted) HWY_ATTR {
    return hn::BitCast(du, hn::ConvertTo(DRows(), hn::ShiftRight<24>(shifted)));
  };
  const auto all = hn::BitCast(di, quads);
  const auto first = column(hn::ShiftLeft<24>(all)), second = column(hn::ShiftLeft<16>(all));
  const auto third = column(hn::ShiftLeft<8>(all)), fourth = column(all);
  // The lower half of such a float is 0.
  hn::Store(hn::Or(hn::ShiftRight<16>(first), second), du, words[0]);
  hn::Store(hn::Or(hn::ShiftRight<16>(third), fourth), du, words[1]);
}

// Groups of one tile as the kernel reads them, numbered from the first of a part of its columns.
// Words are the quants where they are unpacked, and unsigned bytes q + Bytes32::kBias where they
// are packed.
class PackedBytes {
 public:
  PackedBytes(const Bytes32& w, size_t first) : w_(w), first_(first) {}
  HWY_INLINE const void* Words(size_t g) const { return w_.Quads(first_ + g); }
  HWY_INLINE VRows Scale(size_t g) const { return w_.Scale(first_ + g); }

 private:
  Bytes32 w_;
  size_t first_;
};
template <class Group>
class UnpackedGroups {
 public:
  explicit UnpackedGroups(const Group* groups) : groups_(groups) {}
  HWY_INLINE const void* Words(size_t g) const { return groups_[g].words; }
  HWY_INLINE VRows Scale(size_t g) const { return hn::LoadU(DRows(), groups_[g].scales); }
  HWY_INLINE VRows Offset(size_t g) const { return hn::LoadU(DRows(), groups_[g].offsets); }

 private:
  const Group* groups_;
};

template <class Format, bool kIsBf16>
HWY_INLINE void Unpack(const Format& w, size_t g, UnpackedGroup<Format, kIsBf16>& group) {
  const DQuads d8;
  const auto bias = hn::Set(d8, static_cast<uint8_t>(Format::kBias));
  const auto store = [&](VQuads quads, size_t index) HWY_ATTR {
    const auto quants = hn::Sub(quads, bias);
    if constexpr (kIsBf16) {
      StoreAsBf16(quants, group.words + 2 * index);
    } else {
      hn::Store(quants, d8, reinterpret_cast<uint8_t*>(group.words[index]));
    }
  };
  const auto step = [&]<size_t s>() HWY_ATTR {
    VQuads a, b;
    w.template Step<s>(g, a, b);
    store(a, 2 * s);
    store(b, 2 * s + 1);
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

// Copies a block of the activations of one token, number `token` of a TokensBlock, for the products
// of a format.
template <class Format, bool kIsBf16>
HWY_INLINE void CopyBlock(const QuantizedBlock& from, size_t token, TokensBlock<kIsBf16>& to) {
  if constexpr (kIsBf16) {
    const hn::FixedTag<Bf16, kQuantBlock> d16;
    const hn::FixedTag<int8_t, kQuantBlock / 2> d8;
    const auto floats = [&](size_t i) HWY_ATTR {
      const hn::Rebind<int32_t, decltype(d8)> di;
      const auto quants = hn::PromoteTo(di, hn::Load(d8, from.quants + i));
      return hn::BitCast(d16, hn::ConvertTo(hn::Rebind<float, decltype(di)>(), quants));
    };
    hn::Store(hn::ConcatOdd(d16, floats(kQuantBlock / 2), floats(0)), d16, to.quants[token]);
  } else {
    const hn::FixedTag<int8_t, kQuantBlock> d8;
    hn::Store(hn::Load(d8, from.quants), d8, to.quants[token]);
  }
  to.scales[token] = from.scale;
  if constexpr (Format::kHasOffsets) {
    constexpr size_t kGroups = kQuantBlock / Format::kGroup;
    for (size_t i = 0; i < kGroups; ++i) {
      to.sums[i][token] = kGroups == 1 ? from.sum : from.sums16[i];
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#endif  // HWY_TARGET

#endif  // toggling guard
