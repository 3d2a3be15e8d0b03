// Floats to the weight types of GGUF files.
#ifndef INLAY_OPS_QUANT_QUANTIZE_H_
#define INLAY_OPS_QUANT_QUANTIZE_H_

#include <cstddef>

#include "ops/quant/weight_type.h"

namespace inlay {

// Writes n floats, a whole number of the type's quantization blocks, as elements of `type`, one
// that is_written: for finite values the same bytes that llama.cpp's quantizer writes without an
// importance matrix. For values that are not finite the block is unspecified, but there is no
// undefined behaviour.
void QuantizeRow(WeightType type, const float* x, size_t n, void* out);

}  // namespace inlay

#endif  // INLAY_OPS_QUANT_QUANTIZE_H_
