// Errors that end the program with another status than 1: those of the command line itself with 2,
// those of parts of a job that is done with 3, Ctrl-C with 130.
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

// The job is done, and its results are there, but some of them are errors.
absl::Status PartsFailedError(absl::string_view message);

bool IsPartsFailedError(const absl::Status& status);

// Ctrl-C has ended what was asked for: the program ends as if by the signal itself, so that a loop
// of the shell ends, too. `message` may be empty: then the results so far are there, and speak for
// themselves.
absl::Status InterruptedError(absl::string_view message);

bool IsInterruptedError(const absl::Status& status);

}  // namespace inlay

#endif  // INLAY_TOOLS_FLAGS_USAGE_ERROR_H_
