#include "tools/flags/usage_error.h"

#include "absl/strings/cord.h"

namespace inlay {
namespace {

// Mark a status; the payload itself is empty.
constexpr char kUsageMark[] = "inlay/usage";
constexpr char kPartsMark[] = "inlay/parts";
constexpr char kInterruptedMark[] = "inlay/interrupted";

absl::Status Marked(absl::Status status, absl::string_view mark) {
  status.SetPayload(mark, absl::Cord());
  return status;
}

}  // namespace

absl::Status UsageError(absl::string_view message) {
  return Marked(absl::InvalidArgumentError(message), kUsageMark);
}

bool IsUsageError(const absl::Status& status) { return status.GetPayload(kUsageMark).has_value(); }

absl::Status PartsFailedError(absl::string_view message) {
  return Marked(absl::AbortedError(message), kPartsMark);
}

bool IsPartsFailedError(const absl::Status& status) {
  return status.GetPayload(kPartsMark).has_value();
}

absl::Status InterruptedError(absl::string_view message) {
  return Marked(absl::CancelledError(message), kInterruptedMark);
}

bool IsInterruptedError(const absl::Status& status) {
  return status.GetPayload(kInterruptedMark).has_value();
}

}  // namespace inlay
