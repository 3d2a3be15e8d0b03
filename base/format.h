// Text by a format string of absl's, without the risk that absl::StrFormat is where memory runs
// out.
#ifndef INLAY_BASE_FORMAT_H_
#define INLAY_BASE_FORMAT_H_

#include <cstddef>
#include <string>

#include "absl/strings/str_format.h"

namespace inlay {

// Appends what absl::StrAppendFormat would. That function grows strings in a destructor, where a
// lack of memory ends the process; here it throws std::bad_alloc, and `text` is as it was.
template <class... Args>
void AppendFormat(std::string* text, const absl::FormatSpec<Args...>& format, const Args&... args) {
  const size_t before = text->size();
  const int added = absl::SNPrintF(nullptr, 0, format, args...);
  if (added <= 0) return;
  text->resize(before + static_cast<size_t>(added) + 1);  // with the zero that SNPrintF writes
  absl::SNPrintF(&(*text)[before], static_cast<size_t>(added) + 1, format, args...);
  text->pop_back();
}

// The same as a text of its own.
template <class... Args>
std::string Format(const absl::FormatSpec<Args...>& format, const Args&... args) {
  std::string text;
  AppendFormat(&text, format, args...);
  return text;
}

}  // namespace inlay

#endif  // INLAY_BASE_FORMAT_H_
