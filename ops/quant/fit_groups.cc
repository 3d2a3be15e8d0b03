#include "ops/quant/fit_groups.h"

#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/quant/fit_groups.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"
#include "ops/quant/quant_fit.h"
#include "ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {
namespace {

// `lanes` groups of kSize values, value by value: [kSize][lanes].
template <int kGroups>
struct Transposed {
  static constexpr size_t kSize = 256 / kGroups;
  HWY_ALIGN float values[kSize * kGroups];

  // Of the groups from `first` on of x [256].
  Transposed(const float* x, size_t first, size_t lanes) {
    for (size_t i = 0; i < kSize; ++i) {
      for (size_t lane = 0; lane < lanes; ++lane)
        values[i * lanes + lane] = x[(first + lane) * kSize + i];
    }
  }
};

// v rounded to the nearest integer, ties to even, within [low, high]; low for NaN.
template <class DF>
HWY_INLINE hn::Vec<DF> RoundedWithin(DF, hn::Vec<DF> v, hn::Vec<DF> low, hn::Vec<DF> high) {
  return hn::Round(hn::Min(hn::IfThenElse(hn::Gt(v, low), v, low), high));
}

// The levels of groups from `first` on, plus `offset`; 0 where `none`.
template <int kGroups, class DF>
HWY_INLINE void StoreLevels(DF df, const Transposed<kGroups>& x, size_t first, hn::Vec<DF> inverse,
                            hn::Vec<DF> min, float low, float high, hn::Mask<DF> none,
                            uint8_t* levels) {
  const size_t lanes = hn::Lanes(df);
  HWY_ALIGN float row[kGroups];
  for (size_t i = 0; i < x.kSize; ++i) {
    const auto v = hn::Mul(inverse, hn::Sub(hn::Load(df, x.values + i * lanes), min));
    const auto q = RoundedWithin(df, v, hn::Set(df, low), hn::Set(df, high));
    hn::Store(hn::IfThenZeroElse(none, hn::Sub(q, hn::Set(df, low))), df, row);
    for (size_t lane = 0; lane < lanes; ++lane)
      levels[(first + lane) * x.kSize + i] = static_cast<uint8_t>(row[lane]);
  }
}

template <int kGroups>
void FitAffine(const AffineSearch& search, const float* values, float* scales, float* mins,
               uint8_t* levels) {
  const hn::CappedTag<float, kGroups> df;
  using V = hn::Vec<decltype(df)>;
  constexpr size_t kSize = 256 / kGroups;
  const size_t lanes = hn::Lanes(df);
  HWY_ALIGN float weights[kSize * kGroups];
  HWY_ALIGN float qs[kSize * kGroups];
  for (size_t first = 0; first < kGroups; first += lanes) {
    const Transposed<kGroups> x(values, first, lanes);
    const auto at = [&](const float* rows, size_t i) { return hn::Load(df, rows + i * lanes); };
    V average = hn::Zero(df);
    if (!search.absolute_error) {
      for (size_t i = 0; i < kSize; ++i)
        average = hn::Add(average, hn::Mul(at(x.values, i), at(x.values, i)));
      average = hn::Sqrt(hn::Div(average, hn::Set(df, static_cast<float>(kSize))));
    }
    for (size_t i = 0; i < kSize; ++i) {
      const V size = hn::Abs(at(x.values, i));
      hn::Store(search.absolute_error ? size : hn::Add(average, size), df, weights + i * lanes);
    }

    V min = at(x.values, 0), max = min;
    V sum_w = at(weights, 0), sum_x = hn::Mul(sum_w, at(x.values, 0));
    for (size_t i = 1; i < kSize; ++i) {
      const V v = at(x.values, i);
      min = hn::IfThenElse(hn::Lt(v, min), v, min);
      max = hn::IfThenElse(hn::Gt(v, max), v, max);
      sum_w = hn::Add(sum_w, at(weights, i));
      sum_x = hn::Add(sum_x, hn::Mul(at(weights, i), v));
    }
    min = hn::IfThenElse(hn::Gt(min, hn::Zero(df)), hn::Zero(df), min);
    const auto equal = hn::Eq(max, min);

    const V most = hn::Set(df, static_cast<float>(search.max_level));
    const auto error_of = [&](V scale, V offset) {
      V sum = hn::Zero(df);
      for (size_t i = 0; i < kSize; ++i) {
        const V difference = hn::Sub(hn::Add(hn::Mul(scale, at(qs, i)), offset), at(x.values, i));
        const V loss =
            search.absolute_error ? hn::Abs(difference) : hn::Mul(difference, difference);
        sum = hn::Add(sum, hn::Mul(at(weights, i), loss));
      }
      return sum;
    };
    const V unit = hn::Div(most, hn::Sub(max, min));
    for (size_t i = 0; i < kSize; ++i) {
      const V v = hn::Mul(unit, hn::Sub(at(x.values, i), min));
      hn::Store(RoundedWithin(df, v, hn::Zero(df), most), df, qs + i * lanes);
    }
    V scale = hn::Div(hn::Set(df, 1), unit);
    V best = error_of(scale, min);
    // What the levels of the best trial are computed from.
    V best_inverse = unit, best_from = min;
    for (int step = 0; step <= search.last_step; ++step) {
      const float numerator =
          search.first + 0.1f * static_cast<float>(step) + static_cast<float>(search.max_level);
      // Levels start from the best `min` so far.
      const V inverse = hn::Div(hn::Set(df, numerator), hn::Sub(max, min));
      V sum_q = hn::Zero(df), sum_qq = hn::Zero(df), sum_xq = hn::Zero(df);
      for (size_t i = 0; i < kSize; ++i) {
        const V v = at(x.values, i);
        const V q = RoundedWithin(df, hn::Mul(inverse, hn::Sub(v, min)), hn::Zero(df), most);
        hn::Store(q, df, qs + i * lanes);
        const V wq = hn::Mul(at(weights, i), q);
        sum_q = hn::Add(sum_q, wq);
        sum_qq = hn::Add(sum_qq, hn::Mul(wq, q));
        sum_xq = hn::Add(sum_xq, hn::Mul(wq, v));
      }
      // The least-squares line for these levels, with min <= 0.
      const V determinant = hn::Sub(hn::Mul(sum_w, sum_qq), hn::Mul(sum_q, sum_q));
      const auto determined = hn::Gt(determinant, hn::Zero(df));
      V trial_scale = hn::Div(hn::Sub(hn::Mul(sum_w, sum_xq), hn::Mul(sum_x, sum_q)), determinant);
      V trial_min = hn::Div(hn::Sub(hn::Mul(sum_qq, sum_x), hn::Mul(sum_q, sum_xq)), determinant);
      const auto above = hn::Gt(trial_min, hn::Zero(df));
      trial_scale = hn::IfThenElse(above, hn::Div(sum_xq, sum_qq), trial_scale);
      trial_min = hn::IfThenZeroElse(above, trial_min);
      const V trial_error = error_of(trial_scale, trial_min);
      const auto better = hn::And(determined, hn::Lt(trial_error, best));
      best_inverse = hn::IfThenElse(better, inverse, best_inverse);
      best_from = hn::IfThenElse(better, min, best_from);
      best = hn::IfThenElse(better, trial_error, best);
      scale = hn::IfThenElse(better, trial_scale, scale);
      min = hn::IfThenElse(better, trial_min, min);
    }
    // Of equal values no trial is better: `min` is still theirs.
    hn::StoreU(hn::IfThenZeroElse(equal, scale), df, scales + first);
    hn::StoreU(hn::Neg(min), df, mins + first);
    StoreLevels(df, x, first, best_inverse, best_from, 0, static_cast<float>(search.max_level),
                equal, levels);
  }
}

void FitAffine8(const AffineSearch& search, const float* x, float* scales, float* mins,
                uint8_t* levels) {
  FitAffine<8>(search, x, scales, mins, levels);
}

void FitAffine16(const AffineSearch& search, const float* x, float* scales, float* mins,
                 uint8_t* levels) {
  FitAffine<16>(search, x, scales, mins, levels);
}

void FitSixBits(const float* values, float* scales, uint8_t* levels) {
  const hn::CappedTag<float, 16> df;
  using V = hn::Vec<decltype(df)>;
  const size_t lanes = hn::Lanes(df);
  const V low = hn::Set(df, -32), high = hn::Set(df, 31);
  for (size_t first = 0; first < 16; first += lanes) {
    const Transposed<16> x(values, first, lanes);
    const auto at = [&](size_t i) { return hn::Load(df, x.values + i * lanes); };
    V extreme = hn::Zero(df);
    for (size_t i = 0; i < 16; ++i) {
      const V v = at(i);
      extreme = hn::IfThenElse(hn::Gt(hn::Abs(v), hn::Abs(extreme)), v, extreme);
    }
    const auto counts = hn::Ge(hn::Abs(extreme), hn::Set(df, kNegligible));
    V scale = hn::Zero(df), best = hn::Zero(df), best_inverse = hn::Zero(df);
    // The unchanged scale comes first, because it wins among equals.
    for (int trial : {0, -9, -8, -7, -6, -5, -4, -3, -2, -1, 1, 2, 3, 4, 5, 6, 7, 8, 9}) {
      const float numerator = -(32 + 0.1f * static_cast<float>(trial));
      const V inverse = hn::Div(hn::Set(df, numerator), extreme);
      V xq = hn::Zero(df), qq = hn::Zero(df);
      for (size_t i = 0; i < 16; ++i) {
        const V v = at(i);
        const V q = RoundedWithin(df, hn::Mul(inverse, v), low, high);
        const V w = hn::Mul(v, v);
        xq = hn::Add(xq, hn::Mul(hn::Mul(w, v), q));
        qq = hn::Add(qq, hn::Mul(hn::Mul(w, q), q));
      }
      const auto fits = hn::Gt(qq, hn::Zero(df));
      const V ratio = hn::Div(xq, qq);
      if (trial == 0) {
        scale = hn::IfThenElseZero(hn::Ne(qq, hn::Zero(df)), ratio);
        best_inverse = inverse;
        best = hn::Mul(scale, xq);
        continue;
      }
      const auto better = hn::And(fits, hn::Gt(hn::Mul(xq, xq), hn::Mul(best, qq)));
      scale = hn::IfThenElse(better, ratio, scale);
      best_inverse = hn::IfThenElse(better, inverse, best_inverse);
      best = hn::IfThenElse(better, hn::Mul(ratio, xq), best);
    }
    hn::StoreU(hn::IfThenElseZero(counts, scale), df, scales + first);
    StoreLevels(df, x, first, best_inverse, hn::Zero(df), -32, 31, hn::Not(counts), levels);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace inlay {
namespace {

HWY_EXPORT(FitAffine8);
HWY_EXPORT(FitAffine16);
HWY_EXPORT(FitSixBits);

}  // namespace

template <>
void FitAffineGroups<8>(const AffineSearch& search, const float* x, float (&scales)[8],
                        float (&mins)[8], uint8_t (&levels)[256]) {
  HWY_DYNAMIC_DISPATCH(FitAffine8)(search, x, scales, mins, levels);
}

template <>
void FitAffineGroups<16>(const AffineSearch& search, const float* x, float (&scales)[16],
                         float (&mins)[16], uint8_t (&levels)[256]) {
  HWY_DYNAMIC_DISPATCH(FitAffine16)(search, x, scales, mins, levels);
}

void FitSixBitGroups(const float* x, float (&scales)[16], uint8_t (&levels)[256]) {
  HWY_DYNAMIC_DISPATCH(FitSixBits)(x, scales, levels);
}

}  // namespace inlay
#endif  // HWY_ONCE
