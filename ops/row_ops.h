// Ops that compute each row on its own: normalisation, rotary embedding, gates, scales and soft
// caps.
#ifndef INLAY_OPS_ROW_OPS_H_
#define INLAY_OPS_ROW_OPS_H_

#include <cstddef>
#include <limits>

#include "ops/views.h"

namespace inlay {

// y[r, c] = x[r, c] / sqrt(mean over c of x[r, c]^2 + epsilon) * weight[c] (Zhang & Sennrich 2019,
// eq. 4), with weight [x.cols]. The sum of squares is reduced in an order fixed by x.cols. y may be
// x. Code compiled for one x.cols is no faster (docs/static-vs-dynamic.md).
void RmsNorm(ConstFloatRows x, const float* weight, float epsilon, FloatRows y);

// y[r, c] = x[r, c] * scale / max(|x[r]|, epsilon), |x[r]| being the row's Euclidean length. The
// sum of squares is reduced in an order fixed by x.cols. y may be x.
void L2Norm(ConstFloatRows x, float epsilon, float scale, FloatRows y);

// Which elements of a head are the real and the imaginary part of one complex number.
enum class RopePairs {
  kHalves,      // i and i + head_dim / 2 ("NEOX")
  kNeighbours,  // 2 * i and 2 * i + 1
};

// The angles of rotary position embedding (Su et al. 2021, RoFormer): fills angles[t, :] for the
// absolute positions first_position + t with the cosines of the head_dim / 2 angles, then their
// sines (angles.cols == head_dim). Angle i is position / scale * base^(-2 i / head_dim), computed
// in double so that it is the same on every instruction set. Angles from the `turning`-th on are 0.
void RopeAngles(size_t first_position, double base, double scale, FloatRows angles,
                size_t turning = std::numeric_limits<size_t>::max());

// Rotates in place every head of every token: x [tokens, heads * head_dim], angles [tokens, n] from
// RopeAngles. Of each head the first n elements are rotated, as if they were a whole head, and the
// others stay; head_dim 0 means n. For kHalves and n of 64, 128 and 256 there is code compiled for
// that number, up to 1.5 times as fast on a Zen 5 (docs/static-vs-dynamic.md).
void ApplyRope(ConstFloatRows angles, FloatRows x, RopePairs pairs = RopePairs::kHalves,
               size_t head_dim = 0);

// y = gelu(gate) * up with the tanh form of GELU (Hendrycks & Gimpel 2016): 0.5 g (1 + tanh(sqrt(2
// / pi) (g + 0.044715 g^3))). All views have the same shape; y may be gate or up.
void GeluTanhGate(ConstFloatRows gate, ConstFloatRows up, FloatRows y);

// y = silu(gate) * up with silu(g) = g / (1 + exp(-g)). y may be gate or up.
void SiluGate(ConstFloatRows gate, ConstFloatRows up, FloatRows y);

// x = 1 / (1 + exp(-x)), the logistic function.
void Logistic(FloatRows x);

// x = max(x, 0)^2 (So et al. 2021, "Primer"). NaN stays NaN.
void SquaredRelu(FloatRows x);

// y = a * b, element by element; y may be either.
void Multiply(ConstFloatRows a, ConstFloatRows b, FloatRows y);

// x += scale * y.
void AddScaled(ConstFloatRows y, float scale, FloatRows x);

// x *= scale.
void Scale(float scale, FloatRows x);

// x = cap * tanh(x / cap) (Gemma 2 report, section 2).
void SoftCap(float cap, FloatRows x);

}  // namespace inlay

#endif  // INLAY_OPS_ROW_OPS_H_
