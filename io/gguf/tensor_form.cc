#include "io/gguf/tensor_form.h"

#include "ops/matmul/packed_matrix.h"

namespace inlay {
namespace {

constexpr int kFormatShift = 16;
// Beyond it the size of a tile could overflow 64 bits.
constexpr uint64_t kLongestPackedRow = uint64_t{1} << 40;

}  // namespace

uint32_t TensorFormId(const TensorForm& form) {
  const uint32_t id = static_cast<uint32_t>(form.type);
  if (!form.packed) return id;
  return id | (1 + static_cast<uint32_t>(PackedFormatOf(form.type))) << kFormatShift;
}

std::optional<TensorForm> FindTensorForm(uint32_t id) {
  const WeightTypeInfo* type = FindWeightType(id & ((1u << kFormatShift) - 1));
  if (type == nullptr) return std::nullopt;
  for (const bool packed : {false, true}) {
    const TensorForm form{.type = type->type, .packed = packed};
    if (TensorFormId(form) == id) return form;
  }
  return std::nullopt;
}

std::optional<uint64_t> TensorBytes(absl::Span<const uint64_t> dims, const TensorForm& form) {
  const WeightTypeInfo& info = GetWeightTypeInfo(form.type);
  uint64_t rest = 1;  // the matrices and, unless they are packed, their rows
  uint64_t elements = dims[0];
  bool overflow = false;
  for (size_t d = 1; d < dims.size(); ++d) {
    overflow |= __builtin_mul_overflow(elements, dims[d], &elements);
    if (d > 1 || !form.packed) overflow |= __builtin_mul_overflow(rest, dims[d], &rest);
  }
  uint64_t bytes = 0;
  if (form.packed) {
    if (dims[0] > kLongestPackedRow) return std::nullopt;
    const uint64_t rows = dims.size() > 1 ? dims[1] : 1;
    overflow |= __builtin_mul_overflow(rest, rows / kTileRows + (rows % kTileRows != 0), &rest);
    bytes = GetGroupLayout(PackedFormatOf(form.type)).TileBytes(dims[0]);
  } else {
    overflow |=
        __builtin_mul_overflow(dims[0] / info.block_size, uint64_t{info.block_bytes}, &bytes);
  }
  overflow |= __builtin_mul_overflow(bytes, rest, &bytes);
  if (overflow) return std::nullopt;
  return bytes;
}

}  // namespace inlay
