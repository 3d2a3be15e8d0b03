#include "ops/matmul_input.h"

#include "ops/row_kernels.h"

namespace inlay {

void MatMulInput::MakeQuantized() {
  const size_t blocks = x_.rows * x_.cols / kQuantBlock;
  if (blocks_.size() < blocks) blocks_.resize(blocks);
  quantized_ = {x_.cols, blocks_.data()};
}

void MatMulInput::MakeHalves() {
  const size_t stride = (x_.cols + 1) / 2 * 2;
  if (half_memory_.size() < x_.rows * stride) half_memory_.resize(x_.rows * stride);
  halves_ = {stride, half_memory_.data()};
}

void MatMulInput::Announce(ConstFloatRows x, std::span<const PackedMatrix* const> matrices) {
  Set(x);
  for (const PackedMatrix* w : matrices) {
    if (w->format() == PackedFormat::kBF16) {
      MakeHalves();
    } else if (IsQuantized(w->format())) {
      MakeQuantized();
    }
  }
}

void MatMulInput::RoundRows(size_t begin, size_t end) const {
  for (size_t t = begin; t < end; ++t) {
    if (quantized_.blocks != nullptr) RoundRowToBlocks(x_.Row(t), x_.cols, quantized_.Row(t));
    if (halves_.data != nullptr) RoundRowToBf16(x_.Row(t), x_.cols, halves_.Row(t));
  }
}

QuantizedRows MatMulInput::Quantized(ThreadPool& pool) {
  if (quantized_.blocks != nullptr) return quantized_;
  MakeQuantized();
  ForRows(pool, x_.rows, [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t) RoundRowToBlocks(x_.Row(t), x_.cols, quantized_.Row(t));
  });
  return quantized_;
}

Bf16Rows MatMulInput::Halves(ThreadPool& pool) {
  if (halves_.data != nullptr) return halves_;
  MakeHalves();
  ForRows(pool, x_.rows, [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t) RoundRowToBf16(x_.Row(t), x_.cols, halves_.Row(t));
  });
  return halves_;
}

}  // namespace inlay
