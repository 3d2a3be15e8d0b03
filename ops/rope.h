// Rotary position embedding (Su et al. 2021, RoFormer), NEOX layout.
#ifndef INLAY_OPS_ROPE_H_
#define INLAY_OPS_ROPE_H_

#include <cstddef>

#include "ops/views.h"

namespace inlay {

// Fills angles[t, :] for the absolute positions first_position + t: cos of the head_dim / 2 angles,
// then their sines (angles.cols == head_dim). Angle i is position / scale * base^(-2 i / head_dim),
// computed in double so that it is the same on every instruction set.
void RopeAngles(size_t first_position, double base, double scale, FloatRows angles);

// Rotates in place every head of every token: x [tokens, heads * head_dim], angles [tokens,
// head_dim] from RopeAngles. Elements i and i + head_dim / 2 of a head are the two parts of one
// complex number. Head dims 64, 128 and 256 have code made for them, up to 1.5 times as fast
// (docs/static-vs-dynamic.md).
void ApplyRope(ConstFloatRows angles, FloatRows x);

}  // namespace inlay

#endif  // INLAY_OPS_ROPE_H_
