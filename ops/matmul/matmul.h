// Products of activations with packed weight matrices: the engine's matmul.
#ifndef INLAY_OPS_MATMUL_MATMUL_H_
#define INLAY_OPS_MATMUL_MATMUL_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ops/matmul/matmul_task.h"
#include "ops/matmul/operand.h"
#include "ops/matmul/packed_matrix.h"
#include "ops/team.h"
#include "ops/views.h"

namespace inlay {

// What each thread reads first in a product of one token with these matrices, if there are any.
class MatMulAhead final : public PhaseAhead {
 public:
  MatMulAhead(std::vector<const PackedMatrix*> matrices, size_t threads);

  MemoryAhead Head(size_t range, size_t ranges) const override;
  // Whether this describes a product whose first matrix is `w`.
  bool BeginsWith(const PackedMatrix* w) const {
    return !matrices_.empty() && matrices_.front() == w;
  }

 private:
  std::vector<const PackedMatrix*> matrices_;
  size_t tiles_ = 0;
  size_t chunk_ = 1;  // tiles
};

// y[t, r] = sum over c of w[r, c] * x[t, c] for each task; x [rows, cols] has the forms that the
// tasks' matrices read, and cols is the same for all. Threads share the tasks' work equally.
//
// The additions of one element happen in one order whatever the number of tokens, tasks and
// threads:
//   - F32 and F16 weights: y = fma(w_c, x_c, y) for c = 0, 1, ...
//   - BF16 weights: the same with x_c rounded to bfloat16, or two columns at a time as the CPU's
//     instruction for that does. On AVX-512 without such instructions, and with AMX, kBf16Chain
//     columns at a time: y = y + (a + b), where a is this sum over the even columns from 0, and b
//     that over the odd ones; subnormal numbers are zeros.
//   - quantized ones, over the groups of columns that share a scale, in order:
//     y = fma(sum of w_q * x_q, w_scale * x_scale, y), and where the type has offsets then
//     y = fma(w_offset, x_scale * sum of x_q, y); the integer sums are exact.
// On CPU targets without a fused multiply-add, a multiplication and an addition replace it.
//
// Throws std::bad_alloc if there is none of the memory that kernels need (ops/cpu/kernel_memory.h).
void MatMul(std::span<const MatMulTask> tasks, const Operand& x, Team& team,
            const PhaseAhead* ahead = nullptr);

inline void MatMul(const PackedMatrix& w, const Operand& x, FloatRows y, Team& team,
                   const PhaseAhead* ahead = nullptr) {
  const MatMulTask task{&w, y};
  MatMul({&task, 1}, x, team, ahead);
}

}  // namespace inlay

#endif  // INLAY_OPS_MATMUL_MATMUL_H_
