// Probabilities from logits, and the choice of the largest.
#ifndef INLAY_OPS_SOFTMAX_H_
#define INLAY_OPS_SOFTMAX_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace inlay {

// Index of the largest of n > 0 values; the lowest index among equals. NaNs never win; if all are
// NaN the result is 0.
size_t ArgMax(const float* x, size_t n);

// log(sum over i of exp(x[i])), the sum carried in double.
double LogSumExp(const float* x, size_t n);

struct IndexedValue {
  float value;
  int32_t index;
};

// Sets `top` to the min(k, n) largest values with their indices, largest first, lower index first
// among equals. Its memory is used again: with a large k the system takes longer to give memory
// than the values take to be sorted.
void TopK(const float* x, size_t n, size_t k, std::vector<IndexedValue>& top);

// Sets weights[i] to e to the power of (values[i].value - values[0].value) / temperature, which a
// candidate's probability is proportional to. The bits are the same on every CPU.
void SetWeights(const std::vector<IndexedValue>& values, float temperature,
                std::vector<double>& weights);

}  // namespace inlay

#endif  // INLAY_OPS_SOFTMAX_H_
