// The rows whose quantized bytes stand in testdata/quantized.txt, and the bytes whose values stand
// in testdata/dequantized.txt.
#ifndef INLAY_TESTS_OPS_QUANT_ROWS_H_
#define INLAY_TESTS_OPS_QUANT_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace inlay {

inline constexpr size_t kQuantRows = 64;
inline constexpr size_t kQuantCols = 1024;

// Row r: exact arithmetic on 32-bit integers only, so that it is the same everywhere. The shape of
// the values' distribution, their size and their sparsity vary with r.
inline std::vector<float> QuantRow(size_t r) {
  std::vector<float> x(kQuantCols);
  uint32_t state = static_cast<uint32_t>(r) * 2654435761u + 12345;
  const auto next = [&] {  // in [-1, 1)
    state = state * 1664525u + 1013904223u;
    return static_cast<float>(static_cast<int32_t>(state) >> 8) * 0x1p-23f;
  };
  for (size_t i = 0; i < kQuantCols; ++i) {
    float v = next();
    if (r % 4 >= 1) v += next() + next();             // rather normal
    if (r % 4 == 2) v = v < 0 ? -v : v;               // positive
    if (r % 4 == 3 && i / 16 % 3 != 0) v *= 0x1p-7f;  // outliers in some groups
    if (r % 7 == 3 && i / 32 % 2 == 0) v = 0;         // groups of zeros
    if (r % 7 == 5) v = static_cast<float>(static_cast<int>(v * 4)) * 0.25f;  // many ties
    const float size = r % 5 == 0 ? 0x1p-5f : r % 5 == 1 ? 0x1p6f : r % 5 == 2 ? 0x1p-24f : 1.0f;
    x[i] = v * size;
  }
  if (r == 60) x.assign(kQuantCols, 0.0f);
  if (r == 61) x.assign(kQuantCols, -2.5f);
  if (r == 62) x.assign(kQuantCols, 0x1p-60f);
  return x;
}

// Any bytes, likewise the same everywhere.
inline std::vector<uint8_t> QuantBytes(size_t n) {
  std::vector<uint8_t> bytes(n);
  uint32_t state = 7;
  for (uint8_t& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<uint8_t>(state >> 24);
  }
  return bytes;
}

// FNV-1a.
inline uint64_t Hash(uint64_t hash, const uint8_t* bytes, size_t n) {
  for (size_t i = 0; i < n; ++i) hash = (hash ^ bytes[i]) * 1099511628211u;
  return hash;
}
inline constexpr uint64_t kHashStart = 14695981039346656037u;

}  // namespace inlay

#endif  // INLAY_TESTS_OPS_QUANT_ROWS_H_
