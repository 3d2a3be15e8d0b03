// Errors that name what they are about.
#ifndef INLAY_BASE_ABOUT_H_
#define INLAY_BASE_ABOUT_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace inlay {

// The status with "`what`: " before its message; OK stays OK.
inline absl::Status About(absl::string_view what, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(what, ": ", status.message()));
}

}  // namespace inlay

#endif  // INLAY_BASE_ABOUT_H_
