// Counts in sentences.
#ifndef INLAY_BASE_PLURAL_H_
#define INLAY_BASE_PLURAL_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace inlay {

// "1 token", "2 tokens", "0 tokens" for a noun whose plural ends in s.
inline std::string Plural(uint64_t count, absl::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

}  // namespace inlay

#endif  // INLAY_BASE_PLURAL_H_
