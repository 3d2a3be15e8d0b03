// A product with a matrix that is not packed yet, as tests want it.
#ifndef INLAY_TESTS_OPS_PACK_AND_MULTIPLY_H_
#define INLAY_TESTS_OPS_PACK_AND_MULTIPLY_H_

#include "ops/matmul/matmul.h"
#include "ops/matmul/packed_matrix.h"

namespace inlay {

inline void PackAndMultiply(const WeightMatrix& w, ConstFloatRows x, FloatRows y, Team& team) {
  const PackedMatrix packed = PackedMatrix::Pack(w, team);
  const OwnedOperand input(x, OperandForms::For({&packed}), team);
  MatMul(packed, *input, y, team);
}

}  // namespace inlay

#endif  // INLAY_TESTS_OPS_PACK_AND_MULTIPLY_H_
