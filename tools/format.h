// Formatted text, as absl::StrFormat makes it, and numbers for JSON.
#ifndef INLAY_TOOLS_FORMAT_H_
#define INLAY_TOOLS_FORMAT_H_

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

#include "absl/strings/str_format.h"
#include "base/plural.h"

namespace inlay {

// Appends what absl::StrAppendFormat would. That function grows strings in a destructor, where a
// lack of memory ends the process; here it throws std::bad_alloc.
template <class... Args>
void AppendFormat(std::string* text, const absl::FormatSpec<Args...>& format, const Args&... args) {
  const size_t before = text->size();
  const int added = absl::SNPrintF(nullptr, 0, format, args...);
  if (added <= 0) return;
  text->resize(before + static_cast<size_t>(added) + 1);  // with the zero that SNPrintF writes
  absl::SNPrintF(&(*text)[before], static_cast<size_t>(added) + 1, format, args...);
  text->pop_back();
}

template <class... Args>
std::string Format(const absl::FormatSpec<Args...>& format, const Args&... args) {
  std::string text;
  AppendFormat(&text, format, args...);
  return text;
}

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
