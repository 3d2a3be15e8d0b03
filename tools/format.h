// Amounts of bytes for people, and numbers for JSON.
#ifndef INLAY_TOOLS_FORMAT_H_
#define INLAY_TOOLS_FORMAT_H_

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

#include "base/format.h"
#include "base/plural.h"

namespace inlay {

// "13.5 MB", in the units of 1000 in which files are sold.
inline std::string ByteCount(uint64_t bytes) {
  constexpr const char* kUnits[] = {"bytes", "kB", "MB", "GB", "TB"};
  if (bytes < 1000) return Plural(bytes, "byte");
  double x = static_cast<double>(bytes);
  size_t unit = 0;
  for (; x >= 1000 && unit + 1 < std::size(kUnits); ++unit) x /= 1000;
  return Format("%.1f %s", x, kUnits[unit]);
}

// Appends the shortest digits that are read back as the same float. `x` is finite: JSON has no
// other numbers.
inline void AppendFloat(std::string* out, float x) {
  char digits[32];
  const std::to_chars_result end = std::to_chars(digits, digits + sizeof(digits), x);
  out->append(digits, end.ptr);
}

}  // namespace inlay

#endif  // INLAY_TOOLS_FORMAT_H_
