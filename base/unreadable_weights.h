// Marks the error of a model that cannot be read any more, so that a server can tell it from errors
// of a single request.
#ifndef INLAY_BASE_UNREADABLE_WEIGHTS_H_
#define INLAY_BASE_UNREADABLE_WEIGHTS_H_

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"

namespace inlay {

namespace unreadable_weights {

// The payload by which IsUnreadableWeights knows a status.
inline constexpr absl::string_view kMark = "inlay/unreadable_weights";

}  // namespace unreadable_weights

// The same status, marked as the error of a model whose file has changed since it was opened, or
// could not be read: whatever is computed with it from then on fails, too. OK stays OK.
inline absl::Status MarkUnreadableWeights(absl::Status status) {
  status.SetPayload(unreadable_weights::kMark, absl::Cord());
  return status;
}

// Whether MarkUnreadableWeights has marked the status.
inline bool IsUnreadableWeights(const absl::Status& status) {
  return status.GetPayload(unreadable_weights::kMark).has_value();
}

}  // namespace inlay

#endif  // INLAY_BASE_UNREADABLE_WEIGHTS_H_
