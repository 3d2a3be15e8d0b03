// Converts the string views of configs, which include the standard library only, to abseil's.
#ifndef INLAY_GEMMA_LIKE_STRINGS_H_
#define INLAY_GEMMA_LIKE_STRINGS_H_

#include <string_view>

#include "absl/strings/string_view.h"

namespace inlay {

inline absl::string_view ToAbsl(std::string_view s) {
  return absl::string_view(s.data(), s.size());
}

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_STRINGS_H_
