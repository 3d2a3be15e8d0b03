// The activations of products: floats, and their rounded forms for the matrices that need them.
#ifndef INLAY_OPS_MATMUL_OPERAND_H_
#define INLAY_OPS_MATMUL_OPERAND_H_

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <new>

#include "ops/matmul/packed_matrix.h"
#include "ops/matmul/quantized_rows.h"
#include "ops/team.h"
#include "ops/views.h"

namespace inlay {

using Bf16 = uint16_t;  // the bits of a bfloat16
// Columns of bfloat16 whose products AVX3 and AMX add before they add the sum to a total.
inline constexpr size_t kBf16Chain = 32;

// Activations rounded to bfloat16, for bfloat16 weights.
struct Bf16Rows {
  size_t stride = 0;  // the number of columns, rounded up to even: the added one is 0
  Bf16* data = nullptr;

  Bf16* Row(size_t r) const { return data + r * stride; }
};

// The forms of activations, beside floats, that products with some matrices read.
struct OperandForms {
  bool quantized = false;
  bool bf16 = false;

  static OperandForms For(std::initializer_list<const PackedMatrix*> matrices);

  friend OperandForms operator|(OperandForms a, OperandForms b) {
    return {a.quantized || b.quantized, a.bf16 || b.bf16};
  }
};

// Activations in all forms that products read. An operand exists once it is complete, so that
// nothing can be multiplied with rows that are not rounded yet; it is a view, valid as long as its
// memory and the floats stay as they are.
class Operand {
 public:
  // Floats of memory that an operand needs at most, whatever its forms, at an address that is a
  // multiple of 64.
  static constexpr size_t MemoryFloats(size_t rows, size_t cols) {
    const size_t blocks = rows * (cols / kQuantBlock) * sizeof(QuantizedBlock);
    return (blocks + rows * ((cols + 1) / 2 * 2) * sizeof(Bf16)) / sizeof(float);
  }

  // Runs a phase: each of x's rows is computed, by compute(begin, end) for rows [begin, end), and
  // rounded while it is in the cache.
  template <class Compute>
  static Operand Make(ConstFloatRows x, OperandForms forms, float* memory, Team& team,
                      const Compute& compute) {
    return MakeColumns(x, 0, x.cols, 1, forms, memory, team, compute);
  }
  // The same where compute makes some columns of each row, and these alone are rounded: of each of
  // `spans` equal parts of the row, `count` columns from `first` on. Both numbers are multiples of
  // kQuantBlock, or the columns are the last ones. The caller has the other columns filled in.
  template <class Compute>
  static Operand MakeColumns(ConstFloatRows x, size_t first, size_t count, size_t spans,
                             OperandForms forms, float* memory, Team& team,
                             const Compute& compute) {
    assert(first % kQuantBlock == 0 &&
           (spans == 1 || (count % kQuantBlock == 0 && x.cols / spans % kQuantBlock == 0)));
    const Operand operand(x, forms, memory);
    ForRows(team, x.rows, spans * count, [&](size_t begin, size_t end) {
      compute(begin, end);
      for (size_t s = 0; s < spans; ++s) {
        operand.RoundRows(begin, end, s * (x.cols / spans) + first, count);
      }
    });
    return operand;
  }
  // The same for rows that are computed already.
  static Operand Make(ConstFloatRows x, OperandForms forms, float* memory, Team& team) {
    return Make(x, forms, memory, team, [](size_t, size_t) {});
  }

  size_t rows() const { return x_.rows; }
  ConstFloatRows floats() const { return x_; }
  // Forms that it was made without have no data.
  QuantizedRows quantized() const { return quantized_; }
  Bf16Rows bf16() const { return bf16_; }

 private:
  Operand(ConstFloatRows x, OperandForms forms, float* memory);
  // Of the rows [begin, end) the columns [first, first + count).
  void RoundRows(size_t begin, size_t end, size_t first, size_t count) const;

  ConstFloatRows x_;
  QuantizedRows quantized_;
  Bf16Rows bf16_;
};

// An operand of existing rows, with memory of its own.
class OwnedOperand {
 public:
  OwnedOperand(ConstFloatRows x, OperandForms forms, Team& team)
      : memory_(new (kAlignment) float[Operand::MemoryFloats(x.rows, x.cols)]),
        operand_(Operand::Make(x, forms, memory_.get(), team)) {}

  const Operand& operator*() const { return operand_; }

 private:
  static constexpr std::align_val_t kAlignment{alignof(QuantizedBlock)};
  struct Free {
    void operator()(float* p) const { ::operator delete[](p, kAlignment); }
  };

  std::unique_ptr<float[], Free> memory_;
  Operand operand_;
};

}  // namespace inlay

#endif  // INLAY_OPS_MATMUL_OPERAND_H_
