// Errors of the command line itself, which end the program with status 2 instead of 1.
#ifndef INLAY_TOOLS_FLAGS_USAGE_ERROR_H_
#define INLAY_TOOLS_FLAGS_USAGE_ERROR_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace inlay {

absl::Status UsageError(absl::string_view message);
// The same value, or its error as a usage error.
template <class T>
absl::StatusOr<T> AsUsageError(absl::StatusOr<T> value) {
  if (value.ok()) return value;
  return UsageError(value.status().message());
}

bool IsUsageError(const absl::Status& status);

}  // namespace inlay

#endif  // INLAY_TOOLS_FLAGS_USAGE_ERROR_H_
