#include "tools/flags/usage_error.h"

#include "absl/strings/cord.h"

namespace inlay {
namespace {

// Marks a status; the payload itself is empty.
constexpr char kMark[] = "inlay/usage";

}  // namespace

absl::Status UsageError(absl::string_view message) {
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(kMark, absl::Cord());
  return status;
}

bool IsUsageError(const absl::Status& status) { return status.GetPayload(kMark).has_value(); }

}  // namespace inlay
