#include "ops/quant/weight_type.h"

#include <cassert>

namespace inlay {
namespace {

// Block bytes follow from the formats: a scale (f16, 2 bytes), often a minimum (2 bytes), then the
// packed quants; the K and most IQ types hold 256 elements with 4- to 8-bit scales of their
// sub-blocks.
constexpr WeightTypeInfo kTypes[] = {
    {WeightType::kF32, "F32", 1, 4},
    {WeightType::kF16, "F16", 1, 2},
    {WeightType::kQ4_0, "Q4_0", 32, 2 + 16},
    {WeightType::kQ4_1, "Q4_1", 32, 2 + 2 + 16},
    {WeightType::kQ5_0, "Q5_0", 32, 2 + 4 + 16},
    {WeightType::kQ5_1, "Q5_1", 32, 2 + 2 + 4 + 16},
    {WeightType::kQ8_0, "Q8_0", 32, 2 + 32},
    {WeightType::kQ2_K, "Q2_K", 256, 16 + 64 + 2 + 2},
    {WeightType::kQ3_K, "Q3_K", 256, 32 + 64 + 12 + 2},
    {WeightType::kQ4_K, "Q4_K", 256, 2 + 2 + 12 + 128},
    {WeightType::kQ5_K, "Q5_K", 256, 2 + 2 + 12 + 32 + 128},
    {WeightType::kQ6_K, "Q6_K", 256, 128 + 64 + 16 + 2},
    {WeightType::kIQ2_XXS, "IQ2_XXS", 256, 2 + 64, false},
    {WeightType::kIQ2_XS, "IQ2_XS", 256, 2 + 64 + 8, false},
    {WeightType::kIQ3_XXS, "IQ3_XXS", 256, 2 + 64 + 32, false},
    {WeightType::kIQ4_NL, "IQ4_NL", 32, 2 + 16},
    {WeightType::kIQ3_S, "IQ3_S", 256, 2 + 64 + 8 + 32 + 4, false},
    {WeightType::kIQ2_S, "IQ2_S", 256, 2 + 32 + 32 + 8 + 8, false},
    {WeightType::kIQ4_XS, "IQ4_XS", 256, 2 + 2 + 4 + 128},
    {WeightType::kBF16, "BF16", 1, 2},
    {WeightType::kMXFP4, "MXFP4", 32, 1 + 16},
};

char Upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

bool SameIgnoringCase(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (Upper(a[i]) != Upper(b[i])) return false;
  }
  return true;
}

}  // namespace

std::span<const WeightTypeInfo> WeightTypes() { return kTypes; }

const WeightTypeInfo* FindWeightType(uint32_t gguf_id) {
  for (const WeightTypeInfo& info : kTypes) {
    if (static_cast<uint32_t>(info.type) == gguf_id) return &info;
  }
  return nullptr;
}

const WeightTypeInfo* FindWeightType(std::string_view name) {
  for (const WeightTypeInfo& info : kTypes) {
    if (SameIgnoringCase(info.name, name)) return &info;
  }
  return nullptr;
}

const WeightTypeInfo& GetWeightTypeInfo(WeightType type) {
  const WeightTypeInfo* info = FindWeightType(static_cast<uint32_t>(type));
  assert(info != nullptr);
  return *info;
}

}  // namespace inlay
