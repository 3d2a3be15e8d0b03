// A product with a matrix that is not packed yet, as tests want it.
#ifndef INLAY_TESTS_OPS_PACK_AND_MULTIPLY_H_
#define INLAY_TESTS_OPS_PACK_AND_MULTIPLY_H_

#include "ops/matmul.h"
#include "ops/packed_matrix.h"

namespace inlay {

inline void PackAndMultiply(const WeightMatrix& w, ConstFloatRows x, FloatRows y,
                            ThreadPool& pool) {
  const PackedMatrix packed = PackedMatrix::Pack(w, pool);
  MatMulInput input;
  input.Set(x);
  MatMul(packed, input, y, pool);
}

}  // namespace inlay

#endif  // INLAY_TESTS_OPS_PACK_AND_MULTIPLY_H_
