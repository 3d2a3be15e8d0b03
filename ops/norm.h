// Root-mean-square normalisation.
#ifndef INLAY_OPS_NORM_H_
#define INLAY_OPS_NORM_H_

#include "ops/views.h"

namespace inlay {

// y[r, c] = x[r, c] / sqrt(mean over c of x[r, c]^2 + epsilon) * weight[c] (Zhang & Sennrich 2019,
// eq. 4), with weight [x.cols]. The sum of squares is reduced in an order fixed by x.cols. y may be
// x. Code made for one x.cols is no faster (docs/static-vs-dynamic.md).
void RmsNorm(ConstFloatRows x, const float* weight, float epsilon, FloatRows y);

}  // namespace inlay

#endif  // INLAY_OPS_NORM_H_
