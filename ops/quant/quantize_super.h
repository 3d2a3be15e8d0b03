// Quantization to the super-blocks of 256 elements; used by QuantizeRow.
#ifndef INLAY_OPS_QUANT_QUANTIZE_SUPER_H_
#define INLAY_OPS_QUANT_QUANTIZE_SUPER_H_

#include "ops/quant/quant_blocks.h"

namespace inlay {

// x is [kSuperBlock].
void QuantizeSuperBlock(const float* x, BlockQ2_K* block);
void QuantizeSuperBlock(const float* x, BlockQ3_K* block);
void QuantizeSuperBlock(const float* x, BlockQ4_K* block);
void QuantizeSuperBlock(const float* x, BlockQ5_K* block);
void QuantizeSuperBlock(const float* x, BlockQ6_K* block);
void QuantizeSuperBlock(const float* x, BlockIQ4_XS* block);

}  // namespace inlay

#endif  // INLAY_OPS_QUANT_QUANTIZE_SUPER_H_
