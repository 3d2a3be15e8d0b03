// How the kernels read each packed format: quads of bytes and the scales of a group, for a slice of
// a tile.

// Compiled once per CPU target, hence the toggling guard.
#if defined(INLAY_OPS_MATMUL_PACKED_FORMATS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INLAY_OPS_MATMUL_PACKED_FORMATS_INL_H_
#undef INLAY_OPS_MATMUL_PACKED_FORMATS_INL_H_
#else
#define INLAY_OPS_MATMUL_PACKED_FORMATS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "ops/matmul/packed_matrix.h"
#include "ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {
namespace {

// A vector holds as many of a tile's rows as fit: 16 at 512 bits, 8 at 256, 4 at 128.
using DRows = hn::CappedTag<float, kTileRows>;
using DRowInts = hn::RebindToSigned<DRows>;
using DQuads = hn::Repartition<uint8_t, DRows>;
using VRows = hn::Vec<DRows>;
using VQuads = hn::Vec<DQuads>;

// Each format is constructed for a slice of a tile: as many rows from `offset` on as a vector
// holds. For group g of kGroup columns it provides:
//   Step<s>(g, a, b)    quads 2 s and 2 s + 1 of the group, as unsigned bytes q + kBias, for s <
//   kGroup / 8, each up to kMost; Scale(g), Offset(g) of these rows; Offset only if kHasOffsets;
//   Fetch(g, ahead)     prefetches what lies `ahead` bytes after the group: once for all slices of
//   a tile.
template <PackedFormat format>
struct FormatBase {
  static constexpr GroupLayout kLayout = GetGroupLayout(format);
  static constexpr size_t kGroup = kLayout.cols;
  static constexpr bool kHasOffsets = kLayout.offsets != 0;

  FormatBase(const PackedMatrix& w, size_t index, size_t offset)
      : row(index * kTileRows + offset), tile(w.tile(index)), offset_(offset) {}

  HWY_INLINE void Fetch(size_t g, size_t ahead) const {
    if (FirstRow() != 0) return;
    const uint8_t* p = tile + kLayout.Group(g) + ahead;
    for (size_t line = 0; line < kLayout.bytes; line += 64) hwy::Prefetch(p + line);
  }

  size_t row;  // of the matrix, the slice's first

 protected:
  // The quad or pair of quads number `i` of a section.
  HWY_INLINE VQuads Load(size_t g, size_t section, size_t i) const {
    return hn::LoadU(DQuads(),
                     tile + kLayout.Group(g) + section + i * (4 * kTileRows) + FirstRow() * 4);
  }
  HWY_INLINE VRows F16(const uint8_t* section) const {
    return LoadFloat(DRows(), reinterpret_cast<const hwy::float16_t*>(section) + FirstRow());
  }
  HWY_INLINE VRows F16Scale(size_t g) const {
    return F16(tile + kLayout.Group(g) + kLayout.scales);
  }
  // Entry `i` of the header.
  HWY_INLINE VRows Header(size_t g, size_t i) const {
    return F16(tile + kLayout.Header(g) + i * (2 * kTileRows));
  }
  HWY_INLINE VRows Float(size_t g, size_t section) const {
    return hn::LoadU(
        DRows(), reinterpret_cast<const float*>(tile + kLayout.Group(g) + section) + FirstRow());
  }
  template <class T>
  HWY_INLINE VRows Byte(size_t g, size_t section) const {
    const hn::Rebind<T, DRows> d8;
    const auto bytes =
        hn::LoadU(d8, reinterpret_cast<const T*>(tile + kLayout.Group(g) + section) + FirstRow());
    return hn::ConvertTo(DRows(), hn::PromoteTo(DRowInts(), bytes));
  }
  // Where kBits is negative, a shift to the right.
  template <int kBits, class V>
  static V ShiftLeftBy(V v) {
    if constexpr (kBits < 0) {
      return hn::ShiftRight<-kBits>(v);
    } else {
      return hn::ShiftLeft<kBits>(v);
    }
  }
  static VQuads LowNibbles(VQuads v) { return hn::And(v, hn::Set(DQuads(), 0x0F)); }
  static VQuads HighNibbles(VQuads v) {
    const hn::Repartition<uint16_t, DQuads> d16;
    return LowNibbles(hn::BitCast(DQuads(), hn::ShiftRight<4>(hn::BitCast(d16, v))));
  }

  const uint8_t* tile;

 private:
  // Where one vector holds all rows this is a constant, which saves 3 % of the time of many tokens.
  HWY_INLINE size_t FirstRow() const {
    return !HWY_HAVE_SCALABLE && hn::MaxLanes(DRows()) == kTileRows ? 0 : offset_;
  }
  size_t offset_;
};

// Quants that are bytes.
template <PackedFormat format>
struct ByteFormat : FormatBase<format> {
  static constexpr int kBias = 128;
  static constexpr int kMost = 128;  // in magnitude, after the bias is subtracted
  using FormatBase<format>::FormatBase;
  template <size_t s>
  HWY_INLINE void Step(size_t g, VQuads& a, VQuads& b) const {
    a = this->Load(g, 0, 2 * s);
    b = this->Load(g, 0, 2 * s + 1);
  }
};

struct Bytes32 : ByteFormat<PackedFormat::kBytes32> {
  using ByteFormat::ByteFormat;
  HWY_INLINE VRows Scale(size_t g) const { return F16Scale(g); }
};

template <PackedFormat format>
struct Wide : ByteFormat<format> {
  using ByteFormat<format>::ByteFormat;
  HWY_INLINE VRows Scale(size_t g) const { return this->Float(g, this->kLayout.scales); }
  HWY_INLINE VRows Offset(size_t g) const { return this->Float(g, this->kLayout.offsets); }
};

// Quants that are nibbles.
template <PackedFormat format>
struct NibbleFormat : FormatBase<format> {
  static constexpr int kMost = 15;
  using FormatBase<format>::FormatBase;
  template <size_t s>
  HWY_INLINE void Step(size_t g, VQuads& a, VQuads& b) const {
    const VQuads pair = this->Load(g, 0, s);
    a = this->LowNibbles(pair);
    b = this->HighNibbles(pair);
  }
};

struct Nibbles32 : NibbleFormat<PackedFormat::kNibbles32> {
  static constexpr int kBias = 8;
  using NibbleFormat::NibbleFormat;
  HWY_INLINE VRows Scale(size_t g) const { return F16Scale(g); }
};

// Nibbles with a fifth bit.
template <PackedFormat format>
struct FiveFormat : NibbleFormat<format> {
  static constexpr int kMost = 31;
  using NibbleFormat<format>::NibbleFormat;
  template <size_t s>
  HWY_INLINE void Step(size_t g, VQuads& a, VQuads& b) const {
    const hn::Repartition<uint16_t, DQuads> d16;
    VQuads low_a, low_b;
    NibbleFormat<format>::template Step<s>(g, low_a, low_b);
    const auto high = hn::BitCast(d16, this->Load(g, this->kLayout.high, 0));
    // Moves the bit of quad j from bit j to bit 4.
    const auto top = hn::Set(DQuads(), 0x10);
    const auto high_a = this->template ShiftLeftBy<4 - 2 * static_cast<int>(s)>(high);
    const auto high_b = this->template ShiftLeftBy<3 - 2 * static_cast<int>(s)>(high);
    a = hn::OrAnd(low_a, hn::BitCast(DQuads(), high_a), top);
    b = hn::OrAnd(low_b, hn::BitCast(DQuads(), high_b), top);
  }
};

struct Fives32 : FiveFormat<PackedFormat::kFives32> {
  static constexpr int kBias = 16;
  using FiveFormat::FiveFormat;
  HWY_INLINE VRows Scale(size_t g) const { return F16Scale(g); }
};

struct FivesOffset32 : FiveFormat<PackedFormat::kFivesOffset32> {
  static constexpr int kBias = 0;
  using FiveFormat::FiveFormat;
  HWY_INLINE VRows Scale(size_t g) const { return F16Scale(g); }
  HWY_INLINE VRows Offset(size_t g) const { return F16(tile + kLayout.Group(g) + kLayout.offsets); }
};

// Quants of either kind with the scales and offsets of K-quants.
template <class Quants>
struct ScaledK : Quants {
  static constexpr int kBias = 0;
  using Quants::Quants;
  HWY_INLINE VRows Scale(size_t g) const {
    return hn::Mul(this->Header(g, 0), this->template Byte<uint8_t>(g, this->kLayout.scales));
  }
  HWY_INLINE VRows Offset(size_t g) const {
    const VRows offset = this->template Byte<uint8_t>(g, this->kLayout.offsets);
    return hn::Neg(hn::Mul(this->Header(g, 1), offset));
  }
};

using NibblesK = ScaledK<NibbleFormat<PackedFormat::kNibblesK>>;
using FivesK = ScaledK<FiveFormat<PackedFormat::kFivesK>>;

struct SixK : NibbleFormat<PackedFormat::kSixK> {
  static constexpr int kBias = 32;
  static constexpr int kMost = 63;
  using NibbleFormat::NibbleFormat;
  template <size_t s>
  HWY_INLINE void Step(size_t g, VQuads& a, VQuads& b) const {
    const hn::Repartition<uint16_t, DQuads> d16;
    VQuads low_a, low_b;
    NibbleFormat::Step<s>(g, low_a, low_b);
    const auto high = hn::BitCast(d16, Load(g, kLayout.high, 0));
    // Moves the bits of quad j of the group from bit 2 j to bit 4.
    const auto top = hn::Set(DQuads(), 0x30);
    const auto high_a = ShiftLeftBy<(s == 0 ? 4 : 0)>(high);
    const auto high_b = ShiftLeftBy<(s == 0 ? 2 : -2)>(high);
    a = hn::OrAnd(low_a, hn::BitCast(DQuads(), high_a), top);
    b = hn::OrAnd(low_b, hn::BitCast(DQuads(), high_b), top);
  }
  HWY_INLINE VRows Scale(size_t g) const {
    return hn::Mul(Header(g, 0), Byte<int8_t>(g, kLayout.scales));
  }
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#endif  // toggling guard
