// The types that attention's kernels exchange: the keys or values of a KV block, and partial
// results.
#ifndef INLAY_OPS_ATTENTION_ATTENTION_TYPES_H_
#define INLAY_OPS_ATTENTION_ATTENTION_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "ops/attention/kv_shape.h"

namespace inlay {

// A partial result: the softmax-weighted sum over some positions for one query head, in
// Floats(head_dim) floats of memory.
struct Partial {
  float* data;

  static constexpr size_t Floats(size_t head_dim) { return 2 + head_dim; }
  float& largest() const { return data[0]; }  // of the scores
  float& sum() const { return data[1]; }      // of exp(score - largest)
  float* values() const { return data + 2; }  // sums of exp(score - largest) * value
};

// The partial results of the query heads of one kv head, one after the other.
struct Partials {
  float* data;
  size_t head_dim;

  Partial operator[](size_t g) const { return {data + g * Partial::Floats(head_dim)}; }
};

// The keys or the values of one kv head in one KV block, as they lie in memory.
template <class T>
struct KeysOrValues {
  static constexpr bool kScaled = std::is_same_v<T, int8_t>;

  explicit KeysOrValues(const void* memory) : elements(static_cast<const T*>(memory)) {}
  // The scales of the rows, where the type has scales.
  const float* scales(size_t dim) const {
    return reinterpret_cast<const float*>(elements + kKvBlockRows * dim);
  }

  const T* elements;
};

}  // namespace inlay

#endif  // INLAY_OPS_ATTENTION_ATTENTION_TYPES_H_
