// Searches for the scales that represent the groups of a super-block best, for several groups at
// once.
#ifndef INLAY_OPS_QUANT_FIT_GROUPS_H_
#define INLAY_OPS_QUANT_FIT_GROUPS_H_

#include <cstdint>

namespace inlay {

// A group has a lane of the vectors, and each lane computes what the formats' reference quantizers
// compute for its group, in their order: the results have the same bits on every CPU target. For
// values that are not finite they are unspecified.

// How FitAffineGroups searches.
struct AffineSearch {
  int max_level;
  float first;    // numerator of the first trial scale, less max_level
  int last_step;  // steps of 0.1 from `first`
  // What the search minimises for the values v of a group: if true, the sum of |v| * |error|, else
  // that of (|v| + the group's root mean square) * error^2.
  bool absolute_error;
};

// Finds for each group of x [256] levels q in [0, max_level], a scale and a min >= 0 with x ~ scale
// * q - min, by weighted least squares for each of the trial scales. There are kGroups of 256 /
// kGroups values, 8 or 16. A group of equal values has scale 0 and levels 0.
template <int kGroups>
void FitAffineGroups(const AffineSearch& search, const float* x, float (&scales)[kGroups],
                     float (&mins)[kGroups], uint8_t (&levels)[256]);

// Finds for each group of 16 of x [256] levels q in [-32, 32) and a scale with x ~ scale * q,
// minimising the error weighted by x^2 over 19 trial scales around the one that maps the group's
// extreme value to -32. levels = q + 32, or 0 for a group whose magnitudes are all negligible.
void FitSixBitGroups(const float* x, float (&scales)[16], uint8_t (&levels)[256]);

}  // namespace inlay

#endif  // INLAY_OPS_QUANT_FIT_GROUPS_H_
