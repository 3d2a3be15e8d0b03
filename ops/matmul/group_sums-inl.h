// The integer sums of the quantized matmul's inner loop: of one group of columns, for some slices
// of tiles by some tokens. They are exact, so the bits of a product do not depend on which of the
// instructions here computed it.

// Compiled once per CPU target, hence the toggling guard.
#if defined(INLAY_OPS_MATMUL_GROUP_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INLAY_OPS_MATMUL_GROUP_SUMS_INL_H_
#undef INLAY_OPS_MATMUL_GROUP_SUMS_INL_H_
#else
#define INLAY_OPS_MATMUL_GROUP_SUMS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "ops/matmul/packed_formats-inl.h"
#include "ops/matmul/quantized_rows.h"
// After all headers of Highway.
#include "ops/cpu/extension-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {
namespace {

// The four bytes at p in every lane.
HWY_INLINE hn::Vec<DRowInts> Broadcast4(const void* p) {
  int32_t word;
  hwy::CopyBytes<4>(p, &word);
  return hn::Set(DRowInts(), word);
}

HWY_INLINE hn::Vec<DRowInts> Dot4(VQuads w, hn::Vec<DRowInts> x, hn::Vec<DRowInts> sum) {
  const hn::RebindToSigned<DQuads> d8;
  return AddProductsOfBytes(DRowInts(), w, hn::BitCast(d8, x), sum);
}

// Whether a format's weights are converted to signed, which removes their bias, before they are
// multiplied.
template <class Format>
constexpr bool kMadeSigned = kSignedBytes ? Format::kBias == 128 : false;

// The start of the sums of group kGroupIndex of a quantization block, which cancels the format's
// bias.
template <class Format, size_t kGroupIndex>
HWY_INLINE hn::Vec<DRowInts> StartOfSum(const QuantizedBlock& x) {
  if constexpr (Format::kBias == 0 || kMadeSigned<Format>) return hn::Zero(DRowInts());
  constexpr int kShift = hwy::FloorLog2(-QuantizedBlock::kCorrection / std::max(1, Format::kBias));
  const int32_t* correction =
      Format::kGroup == kQuantBlock ? &x.correction : &x.corrections16[kGroupIndex];
  return hn::ShiftRight<kShift>(Broadcast4(correction));
}

// Calls step<s>() for the steps of a group, 8 columns each.
template <class Format, class Step>
HWY_INLINE void ForSteps(const Step& step) {
  step.template operator()<0>();
  step.template operator()<1>();
  if constexpr (Format::kGroup == 32) {
    step.template operator()<2>();
    step.template operator()<3>();
  }
}

#if HWY_HAVE_SCALABLE
// The sum of group g, whose activations are those of group kGroupIndex of a block.
template <class Format, size_t kGroupIndex>
HWY_INLINE hn::Vec<DRowInts> SumGroup(const Format& w, size_t g, const QuantizedBlock& x) {
  auto sum = StartOfSum<Format, kGroupIndex>(x);
  const int8_t* quants = x.quants + kGroupIndex * Format::kGroup;
  const auto step = [&]<size_t s>() HWY_ATTR {
    VQuads a, b;
    w.template Step<s>(g, a, b);
    sum = Dot4(a, Broadcast4(quants + 8 * s), sum);
    sum = Dot4(b, Broadcast4(quants + 8 * s + 4), sum);
  };
  ForSteps<Format>(step);
  return sum;
}
#else
// The sums of a group by T slices of tiles and C tokens.
template <size_t T, size_t C>
using GroupSums = hn::Vec<DRowInts>[T][C];

using DPairs = hn::RepartitionToNarrow<DRowInts>;

// How many quads' products fit 16 bits where weights are at most `most` in magnitude: a power of
// two, of a group of `quads` quads.
constexpr size_t FitInPairs(int most, size_t quads) {
  return std::min(quads, size_t{1} << hwy::FloorLog2(32767 / (2 * 127 * most)));
}

// Adds the products of a group's quad number kQuad, w by x, to the integer sum of a group. `pairs`
// holds the 16-bit sums that are not in `sum` yet. As nothing saturates, sums are the same on all
// CPU targets.
template <class Format, size_t kGroupIndex, size_t kQuad>
HWY_INLINE void AddQuad(VQuads w, hn::Vec<DRowInts> x, const QuantizedBlock& block,
                        hn::Vec<DPairs>& pairs, hn::Vec<DRowInts>& sum) {
  if constexpr (kInPairs) {
    const hn::RebindToSigned<DQuads> d8;
    constexpr bool kBytes = Format::kBias == 128;
    auto quants = hn::BitCast(d8, x);
    if constexpr (kBytes) {  // w x = |w| (x with the sign of w), and no bias
      const auto signed_w = hn::BitCast(d8, hn::Xor(w, hn::Set(DQuads(), 0x80)));
      quants = hn::IfNegativeThenNegOrUndefIfZero(signed_w, quants);
      w = hn::BitCast(DQuads(), hn::Abs(signed_w));
    }
    constexpr size_t kFit = FitInPairs(Format::kMost, Format::kGroup / 4);
    const auto products = hn::SatWidenMulPairwiseAdd(DPairs(), w, quants);
    pairs = kQuad % kFit == 0 ? products : hn::Add(pairs, products);
    if constexpr (kQuad % kFit == kFit - 1) {
      const auto quad_sums = hn::WidenMulPairwiseAdd(DRowInts(), pairs, hn::Set(DPairs(), 1));
      if constexpr (kQuad >= kFit) {
        sum = hn::Add(sum, quad_sums);
      } else {
        sum = kBytes ? quad_sums : hn::Add(quad_sums, StartOfSum<Format, kGroupIndex>(block));
      }
    }
  } else {
    if constexpr (kQuad == 0) sum = StartOfSum<Format, kGroupIndex>(block);
    sum = Dot4(w, x, sum);
  }
}

// SumGroup with the activations of one quad at a time, broadcast to all lanes.
template <class Format, size_t kGroupIndex, size_t T, size_t C>
HWY_INLINE void SumGroupByBroadcasts(const Format* w, size_t g, const QuantizedBlock* const* x,
                                     size_t block, GroupSums<T, C>& sum) {
  hn::Vec<DPairs> pairs[T][C];
  const auto add = [&]<size_t quad>(const VQuads(&weights)[T]) HWY_ATTR {
    for (size_t c = 0; c < C; ++c) {
      const QuantizedBlock& activations = x[c][block];
      const auto value = Broadcast4(activations.quants + kGroupIndex * Format::kGroup + 4 * quad);
      for (size_t t = 0; t < T; ++t) {
        AddQuad<Format, kGroupIndex, quad>(weights[t], value, activations, pairs[t][c], sum[t][c]);
      }
    }
  };
  const auto step = [&]<size_t s>() HWY_ATTR {
    VQuads a[T], b[T];
    for (size_t t = 0; t < T; ++t) w[t].template Step<s>(g, a[t], b[t]);
    add.template operator()<2 * s>(a);
    add.template operator()<2 * s + 1>(b);
  };
  ForSteps<Format>(step);
}

#if INLAY_USES_DOTPROD || INLAY_USES_I8MM
// SumGroup with the activations of both quads of a step in one register.
template <class Format, size_t kGroupIndex, size_t T, size_t C>
HWY_INLINE void SumGroupByLanes(const Format* w, size_t g, const QuantizedBlock* const* x,
                                size_t block, GroupSums<T, C>& sum) {
  for (size_t c = 0; c < C; ++c) {
    for (size_t t = 0; t < T; ++t) sum[t][c] = StartOfSum<Format, kGroupIndex>(x[c][block]);
  }
  const auto step = [&]<size_t s>() HWY_ATTR {
    VQuads a[T], b[T];
    for (size_t t = 0; t < T; ++t) {
      w[t].template Step<s>(g, a[t], b[t]);
      if constexpr (kMadeSigned<Format>) {
        a[t] = hn::Xor(a[t], hn::Set(DQuads(), 0x80));
        b[t] = hn::Xor(b[t], hn::Set(DQuads(), 0x80));
      } else {
        static_assert(!kSignedBytes || Format::kMost < 128);
      }
    }
    for (size_t c = 0; c < C; ++c) {
      const hn::CappedTag<int8_t, 8> d8;
      const auto values = hn::LoadU(d8, x[c][block].quants + kGroupIndex * Format::kGroup + 8 * s);
      for (size_t t = 0; t < T; ++t) sum[t][c] = AddProductsOfLane<0>(a[t], values, sum[t][c]);
      for (size_t t = 0; t < T; ++t) sum[t][c] = AddProductsOfLane<1>(b[t], values, sum[t][c]);
    }
  };
  ForSteps<Format>(step);
}
#endif

// The sums of group g, whose activations are those of group kGroupIndex of the block x[c][block] of
// each token c.
template <class Format, size_t kGroupIndex, size_t T, size_t C>
HWY_INLINE void SumGroup(const Format* w, size_t g, const QuantizedBlock* const* x, size_t block,
                         GroupSums<T, C>& sum) {
#if INLAY_USES_DOTPROD || INLAY_USES_I8MM
  SumGroupByLanes<Format, kGroupIndex, T, C>(w, g, x, block, sum);
#else
  SumGroupByBroadcasts<Format, kGroupIndex, T, C>(w, g, x, block, sum);
#endif
}
#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#endif  // toggling guard
