// The version of the arithmetic that decides a model's bits.
#ifndef INLAY_GEMMA_LIKE_NUMERICS_H_
#define INLAY_GEMMA_LIKE_NUMERICS_H_

#include <cstdint>

namespace inlay {

// Increased whenever any model's logits or states change their bits on any instruction set: saved
// conversations of another version are computed again. numerics_test.cc compares logits with those
// recorded for this version.
inline constexpr uint32_t kNumericsVersion = 5;

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_NUMERICS_H_
