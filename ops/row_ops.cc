#include "ops/row_ops.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "ops/portable_math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/row_ops.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"
#include "ops/norm-inl.h"
#include "ops/rope-inl.h"
#include "ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {
namespace {

void NormRow(const float* x, const float* weight, float epsilon, size_t n, float* y) {
  NormalizeRow(x, weight, epsilon, n, y);
}

void L2NormRow(const float* x, float epsilon, float scale, size_t n, float* y) {
  const hn::ScalableTag<float> df;
  const size_t lanes = hn::Lanes(df);
  const double length = std::sqrt(SumOfSquares(x, n));
  const auto factor =
      hn::Set(df, static_cast<float>(double{scale} / std::max(length, double{epsilon})));
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Mul(hn::LoadU(df, x + i), factor), df, y + i);
  if (i < n) hn::StoreN(hn::Mul(hn::LoadN(df, x + i, n - i), factor), df, y + i, n - i);
}

// Rotates the first 2 * half elements of all heads of a token: angles [2 * half], x [cols], a head
// every `head_dim` of them. kHalf is `half` in code compiled for it, otherwise 0.
template <size_t kHalf>
HWY_INLINE void RotateHeads(const float* angles, size_t half, size_t head_dim, size_t cols,
                            float* x) {
  const size_t n = kHalf == 0 ? half : kHalf;
  for (size_t c = 0; c < cols; c += head_dim) Rotate(angles, angles + n, n, x + c);
}

void RotateToken(const float* angles, size_t half, size_t head_dim, size_t cols, float* x) {
  switch (half) {
    case 32:
      return RotateHeads<32>(angles, half, head_dim, cols, x);
    case 64:
      return RotateHeads<64>(angles, half, head_dim, cols, x);
    case 128:
      return RotateHeads<128>(angles, half, head_dim, cols, x);
    default:
      return RotateHeads<0>(angles, half, head_dim, cols, x);
  }
}

void RotateTokenInterleaved(const float* angles, size_t half, size_t head_dim, size_t cols,
                            float* x) {
  for (size_t c = 0; c < cols; c += head_dim) {
    RotateInterleaved(angles, angles + half, half, x + c);
  }
}

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

struct LogisticOp {
  template <class DF, class V>
  HWY_INLINE V operator()(DF df, V x, V) const {
    const V one = hn::Set(df, 1.0f);
    return hn::Div(one, hn::Add(one, ExpOf(df, hn::Neg(x))));
  }
};

struct SquaredReluOp {
  template <class DF, class V>
  HWY_INLINE V operator()(DF df, V x, V) const {
    const V positive = hn::IfThenZeroElse(hn::Lt(x, hn::Zero(df)), x);
    return hn::Mul(positive, positive);
  }
};

struct MultiplyOp {
  template <class DF, class V>
  HWY_INLINE V operator()(DF, V a, V b) const {
    return hn::Mul(a, b);
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

void LogisticRow(size_t n, float* x) { Combine(LogisticOp(), x, x, n, x); }

void SquaredReluRow(size_t n, float* x) { Combine(SquaredReluOp(), x, x, n, x); }

void MultiplyRow(const float* a, const float* b, size_t n, float* y) {
  Combine(MultiplyOp(), a, b, n, y);
}

void AddScaledRow(const float* y, float scale, size_t n, float* x) {
  Combine(AddScaledOp{scale}, y, x, n, x);
}

void ScaleRow(float scale, size_t n, float* x) { Combine(ScaleOp{scale}, x, x, n, x); }

void SoftCapRow(float cap, size_t n, float* x) { Combine(SoftCapOp{cap}, x, x, n, x); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace inlay {
namespace {

HWY_EXPORT(NormRow);
HWY_EXPORT(L2NormRow);
HWY_EXPORT(RotateToken);
HWY_EXPORT(RotateTokenInterleaved);
HWY_EXPORT(GeluTanhGateRow);
HWY_EXPORT(SiluGateRow);
HWY_EXPORT(LogisticRow);
HWY_EXPORT(SquaredReluRow);
HWY_EXPORT(MultiplyRow);
HWY_EXPORT(AddScaledRow);
HWY_EXPORT(ScaleRow);
HWY_EXPORT(SoftCapRow);

[[maybe_unused]] bool SameShape(ConstFloatRows a, ConstFloatRows b) {
  return a.rows == b.rows && a.cols == b.cols;
}

}  // namespace

void RmsNorm(ConstFloatRows x, const float* weight, float epsilon, FloatRows y) {
  assert(SameShape(x, y));
  const auto norm_row = HWY_DYNAMIC_POINTER(NormRow);
  for (size_t r = 0; r < x.rows; ++r) norm_row(x.Row(r), weight, epsilon, x.cols, y.Row(r));
}

void L2Norm(ConstFloatRows x, float epsilon, float scale, FloatRows y) {
  assert(SameShape(x, y));
  const auto row = HWY_DYNAMIC_POINTER(L2NormRow);
  for (size_t r = 0; r < x.rows; ++r) row(x.Row(r), epsilon, scale, x.cols, y.Row(r));
}

void RopeAngles(size_t first_position, double base, double scale, FloatRows angles,
                size_t turning) {
  assert(angles.cols % 2 == 0);
  const size_t half = angles.cols / 2;
  const double log_base = PortableLog(base);
  for (size_t t = 0; t < angles.rows && turning < half; ++t) {
    std::fill_n(angles.Row(t) + turning, half - turning, 1.0f);
    std::fill_n(angles.Row(t) + half + turning, half - turning, 0.0f);
  }
  for (size_t i = 0; i < std::min(half, turning); ++i) {
    const double frequency =
        PortableExp(-2.0 * static_cast<double>(i) / static_cast<double>(angles.cols) * log_base);
    for (size_t t = 0; t < angles.rows; ++t) {
      const double angle = static_cast<double>(first_position + t) / scale * frequency;
      const SinCos values = PortableSinCos(angle);
      angles.Row(t)[i] = static_cast<float>(values.cos);
      angles.Row(t)[half + i] = static_cast<float>(values.sin);
    }
  }
}

void ApplyRope(ConstFloatRows angles, FloatRows x, RopePairs pairs, size_t head_dim) {
  if (head_dim == 0) head_dim = angles.cols;
  assert(angles.rows == x.rows && angles.cols % 2 == 0 && angles.cols <= head_dim);
  assert(x.cols % head_dim == 0);
  const auto rotate_token = pairs == RopePairs::kHalves
                                ? HWY_DYNAMIC_POINTER(RotateToken)
                                : HWY_DYNAMIC_POINTER(RotateTokenInterleaved);
  for (size_t t = 0; t < x.rows; ++t)
    rotate_token(angles.Row(t), angles.cols / 2, head_dim, x.cols, x.Row(t));
}

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

void Logistic(FloatRows x) {
  const auto row = HWY_DYNAMIC_POINTER(LogisticRow);
  for (size_t r = 0; r < x.rows; ++r) row(x.cols, x.Row(r));
}

void SquaredRelu(FloatRows x) {
  const auto row = HWY_DYNAMIC_POINTER(SquaredReluRow);
  for (size_t r = 0; r < x.rows; ++r) row(x.cols, x.Row(r));
}

void Multiply(ConstFloatRows a, ConstFloatRows b, FloatRows y) {
  assert(SameShape(a, b) && SameShape(a, y));
  const auto row = HWY_DYNAMIC_POINTER(MultiplyRow);
  for (size_t r = 0; r < y.rows; ++r) row(a.Row(r), b.Row(r), y.cols, y.Row(r));
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
