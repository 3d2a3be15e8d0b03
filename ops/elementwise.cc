#include "ops/elementwise.h"

#include <cassert>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/elementwise.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"
#include "ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {

// out[i] = op(a[i], b[i]) for n elements; out may be a or b.
template <class Op>
HWY_INLINE void Combine(const Op& op, const float* a, const float* b, size_t n, float* out) {
  const hn::ScalableTag<float> df;
  const size_t lanes = hn::Lanes(df);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(op(df, hn::LoadU(df, a + i), hn::LoadU(df, b + i)), df, out + i);
  }
  if (i < n) {
    const auto va = hn::LoadN(df, a + i, n - i);
    const auto vb = hn::LoadN(df, b + i, n - i);
    hn::StoreN(op(df, va, vb), df, out + i, n - i);
  }
}

struct GeluTanhGateOp {
  template <class DF, class V>
  HWY_INLINE V operator()(DF df, V gate, V up) const {
    // 0.5 (1 + tanh(u)) = 1 / (1 + e^-2u), which does not cancel for negative u; and 2u =
    // g (1.59577 + 0.0713548 g^2) with 2 sqrt(2 / pi) = 1.59577 and 0.044715 times it 0.0713548.
    const V square = hn::Mul(gate, gate);
    const V poly =
        hn::MulAdd(square, hn::Set(df, 0.07135481282567f), hn::Set(df, 1.5957691216057308f));
    return hn::Mul(Swish(df, gate, hn::Mul(gate, poly)), up);
  }
};

struct SiluGateOp {
  template <class DF, class V>
  HWY_INLINE V operator()(DF df, V gate, V up) const {
    return hn::Mul(Swish(df, gate, gate), up);
  }
};

struct AddScaledOp {
  float scale;
  template <class DF, class V>
  HWY_INLINE V operator()(DF df, V y, V x) const {
    return hn::MulAdd(hn::Set(df, scale), y, x);
  }
};

struct ScaleOp {
  float scale;
  template <class DF, class V>
  HWY_INLINE V operator()(DF df, V x, V) const {
    return hn::Mul(hn::Set(df, scale), x);
  }
};

struct SoftCapOp {
  float cap;
  template <class DF, class V>
  HWY_INLINE V operator()(DF df, V x, V) const {
    return SoftCapOf(df, x, cap);
  }
};

void GeluTanhGateRow(const float* gate, const float* up, size_t n, float* y) {
  Combine(GeluTanhGateOp(), gate, up, n, y);
}

void SiluGateRow(const float* gate, const float* up, size_t n, float* y) {
  Combine(SiluGateOp(), gate, up, n, y);
}

void AddScaledRow(const float* y, float scale, size_t n, float* x) {
  Combine(AddScaledOp{scale}, y, x, n, x);
}

void ScaleRow(float scale, size_t n, float* x) { Combine(ScaleOp{scale}, x, x, n, x); }

void SoftCapRow(float cap, size_t n, float* x) { Combine(SoftCapOp{cap}, x, x, n, x); }

}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace inlay {
namespace {
HWY_EXPORT(GeluTanhGateRow);
HWY_EXPORT(SiluGateRow);
HWY_EXPORT(AddScaledRow);
HWY_EXPORT(ScaleRow);
HWY_EXPORT(SoftCapRow);

[[maybe_unused]] bool SameShape(ConstFloatRows a, ConstFloatRows b) {
  return a.rows == b.rows && a.cols == b.cols;
}
}  // namespace

void GeluTanhGate(ConstFloatRows gate, ConstFloatRows up, FloatRows y) {
  assert(SameShape(gate, up) && SameShape(gate, y));
  const auto row = HWY_DYNAMIC_POINTER(GeluTanhGateRow);
  for (size_t r = 0; r < y.rows; ++r) row(gate.Row(r), up.Row(r), y.cols, y.Row(r));
}

void SiluGate(ConstFloatRows gate, ConstFloatRows up, FloatRows y) {
  assert(SameShape(gate, up) && SameShape(gate, y));
  const auto row = HWY_DYNAMIC_POINTER(SiluGateRow);
  for (size_t r = 0; r < y.rows; ++r) row(gate.Row(r), up.Row(r), y.cols, y.Row(r));
}

void AddScaled(ConstFloatRows y, float scale, FloatRows x) {
  assert(SameShape(x, y));
  const auto row = HWY_DYNAMIC_POINTER(AddScaledRow);
  for (size_t r = 0; r < x.rows; ++r) row(y.Row(r), scale, x.cols, x.Row(r));
}

void Scale(float scale, FloatRows x) {
  const auto row = HWY_DYNAMIC_POINTER(ScaleRow);
  for (size_t r = 0; r < x.rows; ++r) row(scale, x.cols, x.Row(r));
}

void SoftCap(float cap, FloatRows x) {
  const auto row = HWY_DYNAMIC_POINTER(SoftCapRow);
  for (size_t r = 0; r < x.rows; ++r) row(cap, x.cols, x.Row(r));
}

}  // namespace inlay
#endif  // HWY_ONCE
