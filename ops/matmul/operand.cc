#include "ops/matmul/operand.h"

#include <cassert>

#include "ops/row_kernels.h"

namespace inlay {

OperandForms OperandForms::For(std::initializer_list<const PackedMatrix*> matrices) {
  OperandForms forms;
  for (const PackedMatrix* w : matrices) {
    if (w->format() == PackedFormat::kBF16) {
      forms.bf16 = true;
    } else if (IsQuantized(w->format())) {
      forms.quantized = true;
    }
  }
  return forms;
}

Operand::Operand(ConstFloatRows x, OperandForms forms, float* memory) : x_(x) {
  assert(reinterpret_cast<uintptr_t>(memory) % alignof(QuantizedBlock) == 0);
  if (forms.quantized) {
    quantized_ = {x.cols, reinterpret_cast<QuantizedBlock*>(memory)};
    memory += x.rows * (x.cols / kQuantBlock) * (sizeof(QuantizedBlock) / sizeof(float));
  }
  if (forms.bf16) bf16_ = {(x.cols + 1) / 2 * 2, reinterpret_cast<Bf16*>(memory)};
}

void Operand::RoundRows(size_t begin, size_t end, size_t first, size_t count) const {
  for (size_t t = begin; t < end; ++t) {
    const float* const x = x_.Row(t) + first;
    if (quantized_.blocks != nullptr) {
      RoundRowToBlocks(x, count, quantized_.Row(t) + first / kQuantBlock);
    }
    if (bf16_.data != nullptr) RoundRowToBf16(x, count, bf16_.Row(t) + first);
  }
}

}  // namespace inlay
