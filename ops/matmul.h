// Products of activations with packed weight matrices: the engine's matmul.
#ifndef INLAY_OPS_MATMUL_H_
#define INLAY_OPS_MATMUL_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "ops/packed_matrix.h"
#include "ops/quantized_rows.h"
#include "ops/thread_pool.h"
#include "ops/views.h"

namespace inlay {

using Bf16 = uint16_t;  // the bits of a bfloat16

// Activations rounded to bfloat16, for weights that are.
struct Bf16Rows {
  size_t stride = 0;  // the number of columns, rounded up to an even one with a zero
  Bf16* data = nullptr;

  Bf16* Row(size_t r) const { return data + r * stride; }
};

// Activations that several matrices are multiplied with: rounded once, when the first matrix asks
// whose weights are quantized or bfloat16. Owns the memory for that, which grows to the largest
// input seen.
class MatMulInput {
 public:
  // Makes x the input of the next products. x must stay as it is until they are done.
  void Set(ConstFloatRows x) {
    x_ = x;
    quantized_ = QuantizedRows();
    halves_ = Bf16Rows();
  }
  // The same for an x that is still to be computed: who computes its rows [begin, end) then calls
  // RoundRows for them, while they are in the cache. `matrices` are those of the next products.
  void Announce(ConstFloatRows x, std::initializer_list<const PackedMatrix*> matrices);
  void RoundRows(size_t begin, size_t end) const;

  ConstFloatRows floats() const { return x_; }
  QuantizedRows Quantized(ThreadPool& pool);
  Bf16Rows Halves(ThreadPool& pool);

 private:
  void MakeQuantized();
  void MakeHalves();

  ConstFloatRows x_;
  QuantizedRows quantized_;  // of x_, once asked for
  Bf16Rows halves_;
  std::vector<QuantizedBlock> blocks_;
  std::vector<Bf16> half_memory_;
};

// One product of a call: y [tokens, w.rows()], not overlapping the input. Row t of y belongs to the
// input's row t, or x_rows[t] where that is given.
struct MatMulTask {
  const PackedMatrix* w = nullptr;
  FloatRows y;
  const int32_t* x_rows = nullptr;

  size_t InputRow(size_t t) const { return x_rows == nullptr ? t : static_cast<size_t>(x_rows[t]); }
};

// y[t, r] = sum over c of w[r, c] * x[t, c] for each task; x [rows, cols] is the input's, cols the
// same for all. Threads share the tasks' work in equal parts.
//
// The additions of one element happen in one order whatever the number of tokens, tasks and
// threads:
//   - F32 and F16 weights: y = fma(w_c, x_c, y) for c = 0, 1, ...
//   - BF16 weights: the same with x_c rounded to bfloat16, or two columns at a time as the CPU's
//     instruction for that does.
//   - quantized ones, over the groups of columns that share a scale, in order:
//     y = fma(sum of w_q * x_q, w_scale * x_scale, y), and where the type has offsets then
//     y = fma(w_offset, x_scale * sum of x_q, y); the integer sums are exact.
// On CPU targets without a fused multiply-add, a multiplication and an addition take its place.
void MatMul(const MatMulTask* tasks, size_t count, MatMulInput& x, ThreadPool& pool);

inline void MatMul(const PackedMatrix& w, MatMulInput& x, FloatRows y, ThreadPool& pool) {
  const MatMulTask task{&w, y};
  MatMul(&task, 1, x, pool);
}

}  // namespace inlay

#endif  // INLAY_OPS_MATMUL_H_
