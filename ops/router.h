// The choice of experts in a mixture of experts.
#ifndef INLAY_OPS_ROUTER_H_
#define INLAY_OPS_ROUTER_H_

#include <cstddef>

namespace inlay {

// Replaces the n logits of one row's router by each expert's weight: the softmax over the k largest
// logits (the lower index first among equals), and 0 for the others (Shazeer et al. 2017, eq. 3 to
// 5). 1 <= k <= n. If a logit is NaN, so are the k weights.
void KeepTopSoftmax(size_t k, float* logits, size_t n);

// n experts in `count` groups of n / count neighbours, of which a token may use `used`: those whose
// two largest scores have the largest sums (DeepSeek-AI 2024, "DeepSeek-V3 Technical Report",
// section 2.1.2). With used < count, a group must have at least two experts.
struct ExpertGroups {
  static constexpr size_t kMost = 64;

  size_t count = 1;  // at most kMost
  size_t used = 1;
};

// As KeepTopSoftmax with logistic weights (Wang et al. 2024, "Auxiliary-Loss-Free Load Balancing",
// section 2.2): the experts with the k largest scores, logistic(logit) + bias, have the weight
// logistic(logit) divided by the sum of the chosen ones' logistics, which counts as at least 2^-14,
// times `scale`. bias is [n]. The groups that a token uses must have at least k experts; an expert
// of another group is chosen only where fewer than k of their scores are finite. If a score is NaN,
// so are the k weights.
void KeepTopBiasedLogistic(size_t k, const float* bias, float* logits, size_t n,
                           ExpertGroups groups = {}, float scale = 1);

}  // namespace inlay

#endif  // INLAY_OPS_ROUTER_H_
