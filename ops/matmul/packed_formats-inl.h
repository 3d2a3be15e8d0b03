// How the kernels read each packed format: quads of bytes and the scales of a group, for a slice of
// a tile.

// Compiled once per CPU target, hence the toggling guard.
#if defined(INLAY_OPS_MATMUL_PACKED_FORMATS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INLAY_OPS_MATMUL_PACKED_FORMATS_INL_H_
#undef INLAY_OPS_MATMUL_PACKED_FORMATS_INL_H_
#else
#define INLAY_OPS_MATMUL_PACKED_FORMATS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

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

// What a call of a kernel prefetches: what lies `ahead` bytes after block `next` of what it reads,
// and after every `step`-th block from there on. By default nothing.
struct Prefetch {
  // Whether block b is the next; blocks are asked for in order.
  HWY_INLINE bool IsDue(size_t b) {
    if (b != next) return false;
    next += step;
    return true;
  }

  // Prefetches the lines of [p, p + bytes) + ahead.
  HWY_INLINE void Lines(const uint8_t* p, size_t bytes) const {
    p += ahead;
    if (into_second_level) {
      for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(p + i, /*rw=*/0, /*locality=*/2);
    } else {
      for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(p + i, /*rw=*/0, /*locality=*/3);
    }
  }

  size_t ahead = 0;
  size_t next = SIZE_MAX;
  size_t step = 1;
  // Not further than into the second-level cache: what is used much later would push what is used
  // now out of the first level, which also waits for fewer lines at a time.
  bool into_second_level = false;
};
// Along the tile, for calls that read it from memory. The CPU prefetches sequential reads by
// itself, but only to the end of a page. Distance and level were chosen on a Zen 4, and for AVX3_DL
// on a Xeon with AMX, whose first level waits for so few lines that prefetching into it is no
// better than none.
constexpr Prefetch kAlongTile = HWY_TARGET == HWY_AVX3_DL
                                    ? Prefetch{.ahead = 3072, .next = 0, .into_second_level = true}
                                    : Prefetch{.ahead = 4096, .next = 0};

// Each format is constructed for a slice of a tile: as many rows from `offset` on as a vector
// holds. For group g of kGroup columns it provides:
//   Step<s>(g, a, b)    quads 2 s and 2 s + 1 of the group, as unsigned bytes q + kBias, for
//                       s < kGroup / 8, each up to kMost (if kBias is 128, q is up to 128 in
//                       magnitude)
//   Scale(g), Offset(g) of these rows; Offset only if kHasOffsets
//   Fetch(g, fetch)     prefetches what lies ahead of the group, once for all slices of a tile
template <PackedFormat format>
struct FormatBase {
  static constexpr GroupLayout kLayout = GetGroupLayout(format);
  static constexpr size_t kGroup = kLayout.cols;
  static constexpr bool kHasOffsets = kLayout.offsets != 0;

  FormatBase(const PackedMatrix& w, size_t index, size_t offset)
      : row(index * kTileRows + offset), tile(w.tile(index)), offset_(offset) {}

  HWY_INLINE void Fetch(size_t g, const Prefetch& fetch) const {
    if (FirstRow() != 0) return;
    fetch.Lines(tile + kLayout.Group(g), kLayout.bytes);
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
  // A byte per row, of a section of the group or of the header.
  template <class T>
  HWY_INLINE hn::Vec<DRowInts> Ints(const uint8_t* section) const {
    const hn::Rebind<T, DRows> d8;
    return hn::PromoteTo(DRowInts(),
                         hn::LoadU(d8, reinterpret_cast<const T*>(section) + FirstRow()));
  }
  template <class T>
  HWY_INLINE VRows Byte(size_t g, size_t section) const {
    return hn::ConvertTo(DRows(), Ints<T>(tile + kLayout.Group(g) + section));
  }
  static VRows LowNibble(hn::Vec<DRowInts> v) {
    return hn::ConvertTo(DRows(), hn::And(v, hn::Set(DRowInts(), 15)));
  }
  static VRows HighNibble(hn::Vec<DRowInts> v) {
    return hn::ConvertTo(DRows(), hn::ShiftRight<4>(v));
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
  // The group's quads one after the other, each of all rows of the tile.
  const uint8_t* Quads(size_t g) const { return this->tile + FormatBase<format>::kLayout.Group(g); }
};

struct Bytes32 : ByteFormat<PackedFormat::kBytes32> {
  using ByteFormat::ByteFormat;
  HWY_INLINE VRows Scale(size_t g) const { return F16Scale(g); }
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

// Quants of either kind with scales and offsets in f16.
template <class Quants>
struct ScaledBlocks : Quants {
  static constexpr int kBias = 0;
  using Quants::Quants;
  HWY_INLINE VRows Scale(size_t g) const { return this->F16Scale(g); }
  HWY_INLINE VRows Offset(size_t g) const {
    return this->F16(this->tile + this->kLayout.Group(g) + this->kLayout.offsets);
  }
};

using FivesOffset32 = ScaledBlocks<FiveFormat<PackedFormat::kFivesOffset32>>;
using NibblesOffset32 = ScaledBlocks<NibbleFormat<PackedFormat::kNibblesOffset32>>;

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

// Indices into the table of a format, whose values plus a bias are bytes.
template <PackedFormat format>
struct Table {
  static constexpr int Largest() {
    int largest = 0;
    for (size_t i = 0; i < kPackedTableSize; ++i) {
      const int value = PackedTable(format)[i];
      largest = std::max({largest, value, -value});
    }
    return largest;
  }
  // The least power of two above all magnitudes.
  static constexpr int kBias = Largest() < 16 ? 16 : Largest() < 64 ? 64 : 128;
  static constexpr int kMost = kBias == 128 ? 128 : kBias + Largest();

  // SSE2 has no shuffle of bytes by indices: the many instructions in its place are not inlined.
  static HWY_INLINE VQuads LookUp(VQuads indices) {
    if constexpr (HWY_TARGET == HWY_SSE2) return LookUpAlone(indices);
    return LookUpInline(indices);
  }

 private:
  static HWY_NOINLINE VQuads LookUpAlone(VQuads indices) { return LookUpInline(indices); }
  static HWY_INLINE VQuads LookUpInline(VQuads indices) {
    const DQuads d8;
    const auto bias = hn::Set(d8, static_cast<uint8_t>(kBias));
    const auto values = hn::LoadDup128(d8, reinterpret_cast<const uint8_t*>(PackedTable(format)));
    return hn::TableLookupBytes(hn::Add(values, bias), indices);
  }
};

template <PackedFormat format>
struct TableNibbles : NibbleFormat<format> {
  static constexpr int kBias = Table<format>::kBias;
  static constexpr int kMost = Table<format>::kMost;
  using NibbleFormat<format>::NibbleFormat;
  template <size_t s>
  HWY_INLINE void Step(size_t g, VQuads& a, VQuads& b) const {
    NibbleFormat<format>::template Step<s>(g, a, b);
    a = Table<format>::LookUp(a);
    b = Table<format>::LookUp(b);
  }
};

struct TableIq4Nl : TableNibbles<PackedFormat::kTableIq4Nl> {
  using TableNibbles::TableNibbles;
  HWY_INLINE VRows Scale(size_t g) const { return F16Scale(g); }
};

struct TableMxfp4 : TableNibbles<PackedFormat::kTableMxfp4> {
  using TableNibbles::TableNibbles;
  // As BlockMXFP4::Scale.
  HWY_INLINE VRows Scale(size_t g) const {
    const DRowInts di;
    const auto e = Ints<uint8_t>(tile + kLayout.Group(g) + kLayout.scales);
    const auto normal = hn::ShiftLeft<23>(hn::Sub(e, hn::Set(di, 1)));
    const auto subnormal = hn::ShiftLeft<21>(hn::Add(e, hn::Set(di, 1)));
    return hn::BitCast(DRows(), hn::IfThenElse(hn::Lt(e, hn::Set(di, 2)), subnormal, normal));
  }
};

// `kFraction`: what d s is divided by.
template <PackedFormat format, int kFraction>
struct TableK : TableNibbles<format> {
  using TableNibbles<format>::TableNibbles;
  HWY_INLINE VRows Scale(size_t g) const {
    const VRows scale =
        hn::Mul(this->Header(g, 0), this->template Byte<int8_t>(g, this->kLayout.scales));
    if constexpr (kFraction == 1) return scale;
    return hn::Mul(scale, hn::Set(DRows(), 1.0f / kFraction));
  }
};

using TableIq4Xs = TableK<PackedFormat::kTableIq4Xs, 1>;
using TableIq3Xxs = TableK<PackedFormat::kTableIq3Xxs, 4>;
using TableIq3S = TableK<PackedFormat::kTableIq3S, 1>;

struct TwosK : FormatBase<PackedFormat::kTwosK> {
  static constexpr int kBias = 0;
  static constexpr int kMost = 3;
  using FormatBase::FormatBase;
  template <size_t s>
  HWY_INLINE void Step(size_t g, VQuads& a, VQuads& b) const {
    const hn::Repartition<uint16_t, DQuads> d16;
    const auto bits = hn::BitCast(d16, Load(g, 0, 0));
    const auto mask = hn::Set(DQuads(), 3);
    a = hn::And(hn::BitCast(DQuads(), hn::ShiftRight<4 * s>(bits)), mask);
    b = hn::And(hn::BitCast(DQuads(), hn::ShiftRight<4 * s + 2>(bits)), mask);
  }
  HWY_INLINE VRows Scale(size_t g) const { return hn::Mul(Header(g, 0), LowNibble(Scales(g))); }
  HWY_INLINE VRows Offset(size_t g) const {
    return hn::Neg(hn::Mul(Header(g, 1), HighNibble(Scales(g))));
  }

 private:
  HWY_INLINE hn::Vec<DRowInts> Scales(size_t g) const {
    return Ints<uint8_t>(tile + kLayout.Group(g) + kLayout.scales);
  }
};

// Quants of three bits; kGroup columns, 16 or 32, share a scale.
template <PackedFormat format, size_t kCols>
struct ThreeFormat : FormatBase<format> {
  static constexpr size_t kGroup = kCols;
  static constexpr int kMost = 7;
  using FormatBase<format>::FormatBase;

  HWY_INLINE void Fetch(size_t g, const Prefetch& fetch) const {
    if (g % kHalves == 0) FormatBase<format>::Fetch(g / kHalves, fetch);
  }
  template <size_t s>
  HWY_INLINE void Step(size_t g, VQuads& a, VQuads& b) const {
    if (kHalves == 1 || g % 2 == 0) return StepOf32<s>(g / kHalves, a, b);
    StepOf32<(s + 2) % 4>(g / kHalves, a, b);
  }

 protected:
  static constexpr size_t kHalves = 32 / kCols;  // kernel's groups in one of the layout

 private:
  template <size_t s>
  HWY_INLINE void StepOf32(size_t g, VQuads& a, VQuads& b) const {
    const hn::Repartition<uint16_t, DQuads> d16;
    const auto low = hn::BitCast(d16, this->Load(g, 0, s / 2));
    const auto high = hn::BitCast(d16, this->Load(g, this->kLayout.high, 0));
    const auto mask = hn::Set(DQuads(), 3);
    const auto top = hn::Set(DQuads(), 4);
    constexpr int kHigh = 2 - 2 * static_cast<int>(s);  // moves the bit of quad 2 s to bit 2
    a = hn::And(hn::BitCast(DQuads(), hn::ShiftRight<4 * (s % 2)>(low)), mask);
    b = hn::And(hn::BitCast(DQuads(), hn::ShiftRight<4 * (s % 2) + 2>(low)), mask);
    a = hn::OrAnd(a, hn::BitCast(DQuads(), this->template ShiftLeftBy<kHigh>(high)), top);
    b = hn::OrAnd(b, hn::BitCast(DQuads(), this->template ShiftLeftBy<kHigh - 1>(high)), top);
  }
};

struct ThreesK : ThreeFormat<PackedFormat::kThreesK, 16> {
  static constexpr int kBias = 4;
  using ThreeFormat::ThreeFormat;
  HWY_INLINE VRows Scale(size_t g) const {
    return hn::Mul(Header(g / 2, 0), Byte<int8_t>(g / 2, kLayout.scales + g % 2 * kTileRows));
  }
};

template <PackedFormat format, size_t kCols>
struct TableThrees : ThreeFormat<format, kCols> {
  static constexpr int kBias = Table<format>::kBias;
  static constexpr int kMost = Table<format>::kMost;
  using ThreeFormat<format, kCols>::ThreeFormat;
  template <size_t s>
  HWY_INLINE void Step(size_t g, VQuads& a, VQuads& b) const {
    ThreeFormat<format, kCols>::template Step<s>(g, a, b);
    a = Table<format>::LookUp(a);
    b = Table<format>::LookUp(b);
  }

 protected:
  // d (2 s + 1) / 8 of group g, of the layout's, where s is one nibble or the other of `pairs`.
  HWY_INLINE VRows EighthScale(size_t g, hn::Vec<DRowInts> pairs, bool upper) const {
    const VRows nibble = upper ? this->HighNibble(pairs) : this->LowNibble(pairs);
    const VRows eighth = hn::Set(DRows(), 0.125f);
    // (s + 0.5) / 4 is exact, and so is its product with d.
    return hn::Mul(this->Header(g, 0), hn::MulAdd(nibble, hn::Add(eighth, eighth), eighth));
  }
};

struct TableIq2S : TableThrees<PackedFormat::kTableIq2S, 16> {
  using TableThrees::TableThrees;
  HWY_INLINE VRows Scale(size_t g) const {
    return EighthScale(g / 2, Ints<uint8_t>(tile + kLayout.Group(g / 2) + kLayout.scales),
                       g % 2 != 0);
  }
};

struct TableIq2Xxs : TableThrees<PackedFormat::kTableIq2Xxs, 32> {
  using TableThrees::TableThrees;
  HWY_INLINE VRows Scale(size_t g) const {
    const uint8_t* pairs = tile + kLayout.Header(g) + (2 + g % 8 / 2) * kTileRows;
    return EighthScale(g, Ints<uint8_t>(pairs), g % 2 != 0);
  }
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#endif  // toggling guard
