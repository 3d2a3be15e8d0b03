// The activations of a matmul, rounded once for all matrices that they are multiplied with.
#ifndef INLAY_OPS_MATMUL_INPUT_H_
#define INLAY_OPS_MATMUL_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <span>
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
  void Announce(ConstFloatRows x, std::span<const PackedMatrix* const> matrices);
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

}  // namespace inlay

#endif  // INLAY_OPS_MATMUL_INPUT_H_
