// How the elements of stored keys and values are written.
#ifndef INLAY_OPS_ATTENTION_KV_TYPE_H_
#define INLAY_OPS_ATTENTION_KV_TYPE_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace inlay {

// The element type of stored keys and values. kQ8 is int8 times a float scale; each position has
// one scale for its key and one for its value in each head. So a scale multiplies a score, or a
// softmax weight, and costs nothing per element; a scale per 32 elements would cost one more
// product and sum for each 32.
enum class KvType : uint8_t { kF32, kF16, kBF16, kQ8 };

// What a cache stores unless told otherwise: half the memory and reads of kF32, for a rounding that
// is below what quantized weights add (docs/cache.md).
inline constexpr KvType kDefaultKvType = KvType::kF16;

// "f32", "f16", "bf16", "q8".
constexpr absl::string_view KvTypeName(KvType type) {
  switch (type) {
    case KvType::kF32:
      return "f32";
    case KvType::kF16:
      return "f16";
    case KvType::kBF16:
      return "bf16";
    case KvType::kQ8:
      return "q8";
  }
  return "unknown";
}

// Bytes of one element.
constexpr size_t KvTypeBytes(KvType type) {
  return type == KvType::kF32 ? 4 : type == KvType::kQ8 ? 1 : 2;
}

// Bytes of the scale of a position's key or value in one head.
constexpr size_t KvScaleBytes(KvType type) { return type == KvType::kQ8 ? sizeof(float) : 0; }

}  // namespace inlay

#endif  // INLAY_OPS_ATTENTION_KV_TYPE_H_
