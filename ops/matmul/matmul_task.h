// One product of a matrix with the rows of an operand.
#ifndef INLAY_OPS_MATMUL_MATMUL_TASK_H_
#define INLAY_OPS_MATMUL_MATMUL_TASK_H_

#include <cstddef>
#include <cstdint>

#include "ops/matmul/packed_matrix.h"
#include "ops/views.h"

namespace inlay {

// y [tokens, w.rows()] does not overlap the operand. Row t of y belongs to the operand's row t, or
// x_rows[t] where that is given.
struct MatMulTask {
  const PackedMatrix* w = nullptr;
  FloatRows y;
  const int32_t* x_rows = nullptr;

  size_t InputRow(size_t t) const { return x_rows == nullptr ? t : static_cast<size_t>(x_rows[t]); }
};

}  // namespace inlay

#endif  // INLAY_OPS_MATMUL_MATMUL_TASK_H_
