// Errors that name what they are about.
#ifndef INLAY_BASE_ABOUT_H_
#define INLAY_BASE_ABOUT_H_

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace inlay {

// The status with "`what`: " before its message, and with its payloads. OK stays OK, and so does an
// error without a message: there was no memory for one (OutOfMemoryError).
inline absl::Status About(absl::string_view what, const absl::Status& status) {
  if (status.ok() || status.message().empty()) return status;
  absl::Status about(status.code(), absl::StrCat(what, ": ", status.message()));
  status.ForEachPayload(
      [&](absl::string_view type, const absl::Cord& payload) { about.SetPayload(type, payload); });
  return about;
}

}  // namespace inlay

#endif  // INLAY_BASE_ABOUT_H_
