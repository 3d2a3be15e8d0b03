// Whether ids are tokens of a vocabulary.
#ifndef INLAY_GEMMA_LIKE_TOKEN_IDS_H_
#define INLAY_GEMMA_LIKE_TOKEN_IDS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace inlay {

// InvalidArgument with the first id that is below 0 or not below `vocabulary`.
inline absl::Status CheckIds(absl::Span<const int32_t> ids, size_t vocabulary) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && static_cast<size_t>(ids[i]) < vocabulary) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("token ", i, " is ", ids[i], ", outside the vocabulary of ", vocabulary));
  }
  return absl::OkStatus();
}

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_TOKEN_IDS_H_
