// Quantized weights as small integers with scales, the common form of all quantized types.
#ifndef INLAY_OPS_QUANT_QUANT_UNPACK_H_
#define INLAY_OPS_QUANT_QUANT_UNPACK_H_

#include <cstddef>
#include <cstdint>

#include "ops/quant/weight_type.h"

namespace inlay {

// How a type unpacks: w = scale * q, or scale * q + offset in floats, each rounded.
struct UnpackedShape {
  size_t group;      // consecutive elements that share a scale: 16 or 32
  bool has_offsets;  // when false, offsets are not written
};

// For quantized types only.
UnpackedShape GetUnpackedShape(WeightType type);

// Unpacks a row of `cols` elements, a multiple of the type's block size: quants [cols], scales and
// offsets [cols / group], or both nullptr if they are not needed.
void UnpackRow(WeightType type, const void* row, size_t cols, int8_t* quants, float* scales,
               float* offsets);

// The values of such a row as floats, bit for bit as the format defines them.
void DequantizeBlocks(WeightType type, const void* row, size_t cols, float* out);

}  // namespace inlay

#endif  // INLAY_OPS_QUANT_QUANT_UNPACK_H_
