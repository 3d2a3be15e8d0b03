// Whether ids are tokens of a vocabulary.
#ifndef INLAY_BASE_TOKEN_IDS_H_
#define INLAY_BASE_TOKEN_IDS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace inlay {

// InvalidArgument naming the first id that is below 0 or not below `vocabulary`, which is at least
// 1, and `of`, what the ids are part of, such as " of the prompt".
inline absl::Status CheckIds(absl::Span<const int32_t> ids, size_t vocabulary,
                             absl::string_view of = "") {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && static_cast<size_t>(ids[i]) < vocabulary) continue;
    return absl::InvalidArgumentError(absl::StrCat("token id ", ids[i], " at index ", i, of,
                                                   " is outside 0 to ", vocabulary - 1));
  }
  return absl::OkStatus();
}

}  // namespace inlay

#endif  // INLAY_BASE_TOKEN_IDS_H_
