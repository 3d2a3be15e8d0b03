// How the kernels read each packed format: quads of bytes and the scales of a group, for a part of
// a tile's rows.

// Compiled once per CPU target, hence the toggling guard.
#if defined(INLAY_OPS_PACKED_FORMATS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INLAY_OPS_PACKED_FORMATS_INL_H_
#undef INLAY_OPS_PACKED_FORMATS_INL_H_
#else
#define INLAY_OPS_PACKED_FORMATS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "ops/packed_matrix.h"
#include "ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {

// A vector holds as many of a tile's rows as fit: 16 at 512 bits, 8 at 256, 4 at 128.
using DRows = hn::CappedTag<float, kTileRows>;
using DRowInts = hn::RebindToSigned<DRows>;
using DQuads = hn::Repartition<uint8_t, DRows>;
using VRows = hn::Vec<DRows>;
using VQuads = hn::Vec<DQuads>;

// Each format is constructed for the rows of a tile that start at `row`, and gives, for group g of
// kGroup columns:
//   Step<s>(g, a, b)    quads 2 s and 2 s + 1 of the group, as unsigned bytes q + kBias, for s <
//   kGroup / 8; Scale(g), Offset(g) of these rows; Offset only if kHasOffsets;
//   FetchBlock(ahead, b) if kFetches: what block b of 32 columns reads, `ahead` bytes later in the
//   matrix, into the cache. A CPU follows two tiles of few sections by itself; of Q4_K and Q6_K it
//   read 1.4 and 1.7 times as fast with this (one token, one thread), of Q8_0 0.95 times.

struct FormatBase {
  static constexpr bool kFetches = false;
  FormatBase(const PackedMatrix& w, size_t index, size_t row)
      : tile(w.tile(index)), layout(GetTileLayout(w.format(), w.cols())), row(row) {}

  // The quad or pair of quads number `i` of a section.
  VQuads Load(size_t section, size_t i) const {
    return hn::LoadU(DQuads(), tile + section + i * (4 * kTileRows) + row * 4);
  }
  VRows Half(size_t section, size_t g) const {
    return LoadFloat(DRows(),
                     reinterpret_cast<const hwy::float16_t*>(tile + section) + g * kTileRows + row);
  }
  VRows Float(size_t section, size_t g) const {
    return hn::LoadU(DRows(), reinterpret_cast<const float*>(tile + section) + g * kTileRows + row);
  }
  template <class T>
  VRows Byte(size_t section, size_t g) const {
    const hn::Rebind<T, DRows> d8;
    const auto bytes =
        hn::LoadU(d8, reinterpret_cast<const T*>(tile + section) + g * kTileRows + row);
    return hn::ConvertTo(DRows(), hn::PromoteTo(DRowInts(), bytes));
  }
  // Fetches the cache lines where part `i` of a section begins, `bytes` long, `ahead` bytes later.
  HWY_INLINE void Fetch(size_t ahead, size_t section, size_t i, size_t bytes) const {
    const uint8_t* p = tile + ahead + section + i * bytes;
    for (size_t line = 0; line < bytes; line += 64) hwy::Prefetch(p + line);
  }
  static VQuads LowNibbles(VQuads v) { return hn::And(v, hn::Set(DQuads(), 0x0F)); }
  static VQuads HighNibbles(VQuads v) {
    const hn::Repartition<uint16_t, DQuads> d16;
    return LowNibbles(hn::BitCast(DQuads(), hn::ShiftRight<4>(hn::BitCast(d16, v))));
  }

  const uint8_t* tile;
  TileLayout layout;
  size_t row;
};

struct Bytes32 : FormatBase {
  static constexpr size_t kGroup = 32;
  static constexpr int kBias = 128;
  static constexpr bool kHasOffsets = false;
  using FormatBase::FormatBase;
  template <size_t s>
  HWY_INLINE void Step(size_t g, VQuads& a, VQuads& b) const {
    a = Load(0, g * 8 + 2 * s);
    b = Load(0, g * 8 + 2 * s + 1);
  }
  HWY_INLINE VRows Scale(size_t g) const { return Half(layout.scales, g); }
};

struct Nibbles32 : FormatBase {
  static constexpr size_t kGroup = 32;
  static constexpr int kBias = 8;
  static constexpr bool kHasOffsets = false;
  using FormatBase::FormatBase;
  template <size_t s>
  HWY_INLINE void Step(size_t g, VQuads& a, VQuads& b) const {
    const VQuads pair = Load(0, g * 4 + s);
    a = LowNibbles(pair);
    b = HighNibbles(pair);
  }
  HWY_INLINE VRows Scale(size_t g) const { return Half(layout.scales, g); }
};

struct NibblesK : FormatBase {
  static constexpr size_t kGroup = 32;
  static constexpr int kBias = 0;
  static constexpr bool kHasOffsets = true;
  NibblesK(const PackedMatrix& w, size_t index, size_t row)
      : FormatBase(w, index, row), supers(w.cols() / 256) {}
  template <size_t s>
  HWY_INLINE void Step(size_t g, VQuads& a, VQuads& b) const {
    const VQuads pair = Load(0, g * 4 + s);
    a = LowNibbles(pair);
    b = HighNibbles(pair);
  }
  HWY_INLINE VRows Scale(size_t g) const {
    return hn::Mul(Half(layout.supers, g / 8), Byte<uint8_t>(layout.scales, g));
  }
  static constexpr bool kFetches = true;
  HWY_INLINE void FetchBlock(size_t ahead, size_t g) const {
    Fetch(ahead, 0, g, 256);
    if (g % 4 != 0) return;
    Fetch(ahead, layout.scales, g / 4, 64);
    Fetch(ahead, layout.offsets, g / 4, 64);
  }
  HWY_INLINE VRows Offset(size_t g) const {
    return hn::Neg(hn::Mul(Half(layout.supers, supers + g / 8), Byte<uint8_t>(layout.offsets, g)));
  }
  size_t supers;
};

struct SixK : FormatBase {
  static constexpr size_t kGroup = 16;
  static constexpr int kBias = 32;
  static constexpr bool kHasOffsets = false;
  using FormatBase::FormatBase;
  template <size_t s>
  HWY_INLINE void Step(size_t g, VQuads& a, VQuads& b) const {
    const hn::Repartition<uint16_t, DQuads> d16;
    const VQuads pair = Load(0, g * 2 + s);
    const auto high = hn::BitCast(d16, Load(layout.high, g));
    // The bits of quad j of the group stand at 2 j, and belong at 4.
    const auto top = hn::Set(DQuads(), 0x30);
    const auto high_a = s == 0 ? hn::ShiftLeft<4>(high) : high;
    const auto high_b = s == 0 ? hn::ShiftLeft<2>(high) : hn::ShiftRight<2>(high);
    a = hn::Or(LowNibbles(pair), hn::And(hn::BitCast(DQuads(), high_a), top));
    b = hn::Or(HighNibbles(pair), hn::And(hn::BitCast(DQuads(), high_b), top));
  }
  static constexpr bool kFetches = true;
  HWY_INLINE void FetchBlock(size_t ahead, size_t block) const {
    Fetch(ahead, 0, block, 256);
    Fetch(ahead, layout.high, block, 128);
    if (block % 2 == 0) Fetch(ahead, layout.scales, block / 2, 64);
  }
  HWY_INLINE VRows Scale(size_t g) const {
    return hn::Mul(Half(layout.supers, g / 16), Byte<int8_t>(layout.scales, g));
  }
};

template <size_t kColumns>
struct Wide : FormatBase {
  static constexpr size_t kGroup = kColumns;
  static constexpr int kBias = 128;
  static constexpr bool kHasOffsets = true;
  using FormatBase::FormatBase;
  template <size_t s>
  HWY_INLINE void Step(size_t g, VQuads& a, VQuads& b) const {
    a = Load(0, g * (kGroup / 4) + 2 * s);
    b = Load(0, g * (kGroup / 4) + 2 * s + 1);
  }
  HWY_INLINE VRows Scale(size_t g) const { return Float(layout.scales, g); }
  HWY_INLINE VRows Offset(size_t g) const { return Float(layout.offsets, g); }
};

}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#endif  // toggling guard
