// Element-wise ops: gates, residual additions, scales and soft caps.
#ifndef INLAY_OPS_ELEMENTWISE_H_
#define INLAY_OPS_ELEMENTWISE_H_

#include "ops/views.h"

namespace inlay {

// y = gelu(gate) * up with the tanh form of GELU (Hendrycks & Gimpel 2016): 0.5 g (1 + tanh(sqrt(2
// / pi) (g + 0.044715 g^3))). All views have the same shape; y may be gate or up.
void GeluTanhGate(ConstFloatRows gate, ConstFloatRows up, FloatRows y);

// y = silu(gate) * up with silu(g) = g / (1 + exp(-g)). y may be gate or up.
void SiluGate(ConstFloatRows gate, ConstFloatRows up, FloatRows y);

// x += scale * y.
void AddScaled(ConstFloatRows y, float scale, FloatRows x);

// x *= scale.
void Scale(float scale, FloatRows x);

// x = cap * tanh(x / cap) (Gemma 2 report, section 2).
void SoftCap(float cap, FloatRows x);

}  // namespace inlay

#endif  // INLAY_OPS_ELEMENTWISE_H_
