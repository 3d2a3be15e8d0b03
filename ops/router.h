// The choice of experts in a mixture of experts.
#ifndef INLAY_OPS_ROUTER_H_
#define INLAY_OPS_ROUTER_H_

#include <cstddef>

namespace inlay {

// Replaces the n logits of one row's router by each expert's weight: the softmax over the k largest
// logits (the lower index first among equals), and 0 for the others (Shazeer et al. 2017, eq. 3 to
// 5). 1 <= k <= n. A NaN logit is never among the largest unless too few others are left.
void KeepTopSoftmax(size_t k, float* logits, size_t n);

// The same with logistic weights (Wang et al. 2024, "Auxiliary-Loss-Free Load Balancing", section
// 2.2): the experts with the k largest logistic(logit) + bias have the weight logistic(logit)
// divided by the sum of the chosen ones' logistics, which counts as at least 2^-14. bias is [n].
void KeepTopBiasedLogistic(size_t k, const float* bias, float* logits, size_t n);

}  // namespace inlay

#endif  // INLAY_OPS_ROUTER_H_
