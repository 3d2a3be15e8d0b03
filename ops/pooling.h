// One vector of many rows, for models that embed texts.
#ifndef INLAY_OPS_POOLING_H_
#define INLAY_OPS_POOLING_H_

#include "ops/views.h"

namespace inlay {

// mean[c] = the mean over r of x[r, c], for x of at least one row and mean [x.cols]. Sums are
// carried in double, row after row.
void MeanOfRows(ConstFloatRows x, float* mean);

// Scales each row to the Euclidean length 1; a row of zeros stays as it is.
void ScaleToLength1(FloatRows x);

}  // namespace inlay

#endif  // INLAY_OPS_POOLING_H_
