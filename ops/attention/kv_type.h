// How the elements of stored keys and values are written.
#ifndef INLAY_OPS_ATTENTION_KV_TYPE_H_
#define INLAY_OPS_ATTENTION_KV_TYPE_H_

#include <cstddef>
#include <cstdint>

namespace inlay {

// The element type of stored keys and values. kQ8 is int8 times a float scale, one for a position's
// key of a head and one for its value. So a scale is a factor of a score, or of a weight, and costs
// nothing per element; a scale per 32 elements would be one more product and sum for each of them.
enum class KvType : uint8_t { kF32, kF16, kBF16, kQ8 };

// Of one element.
constexpr size_t KvTypeBytes(KvType type) {
  return type == KvType::kF32 ? 4 : type == KvType::kQ8 ? 1 : 2;
}

// Of the scale of a position's key or value in one head.
constexpr size_t KvScaleBytes(KvType type) { return type == KvType::kQ8 ? sizeof(float) : 0; }

}  // namespace inlay

#endif  // INLAY_OPS_ATTENTION_KV_TYPE_H_
