// The element types in which GGUF files store weights, and the sizes of their quantization
// blocks.
#ifndef INLAY_OPS_QUANT_WEIGHT_TYPE_H_
#define INLAY_OPS_QUANT_WEIGHT_TYPE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace inlay {

// The values are the type ids of the GGUF format.
enum class WeightType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kIQ2_XXS = 16,
  kIQ2_XS = 17,
  kIQ3_XXS = 18,
  kIQ4_NL = 20,
  kIQ3_S = 21,
  kIQ2_S = 22,
  kIQ4_XS = 23,
  kBF16 = 30,
  kMXFP4 = 39,
};

// How a type is laid out: `block_size` consecutive elements of a row share `block_bytes` bytes.
struct WeightTypeInfo {
  WeightType type;
  std::string_view name;  // as GGUF tools print it, "Q4_K"
  size_t block_size;      // elements
  size_t block_bytes;
  bool is_written = true;  // whether QuantizeRow writes it: not where that takes a search of grids
};

// All types, in the order of their ids.
std::span<const WeightTypeInfo> WeightTypes();

// The entry for a GGUF type id, or nullptr for an id that Inlay does not read.
const WeightTypeInfo* FindWeightType(uint32_t gguf_id);

// The entry for a name, in any case ("q4_k", "BF16"), or nullptr.
const WeightTypeInfo* FindWeightType(std::string_view name);

// The entry of a type that is known to exist.
const WeightTypeInfo& GetWeightTypeInfo(WeightType type);

}  // namespace inlay

#endif  // INLAY_OPS_QUANT_WEIGHT_TYPE_H_
