#include "serve/sessions/store_errors.h"

#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/steady_time.h"

namespace inlay::serve {

absl::Status StoreErrors::OfStore(const absl::Status& status) {
  if (status.ok() || absl::IsAborted(status)) return status;
  Note(status);
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return absl::UnavailableError("the store of sessions does not answer");
    case absl::StatusCode::kResourceExhausted:
      return absl::UnavailableError("the store of sessions has no room");
    case absl::StatusCode::kDataLoss:
      return absl::DataLossError("the store of sessions has sent damaged data");
    default:
      return absl::InternalError("the store of sessions failed");
  }
}

void StoreErrors::Note(const absl::Status& status) {
  if (note_ == nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    const absl::Time now = SteadyNow();
    if (now < next_note_) return;
    next_note_ = now + absl::Minutes(1);
  }
  (void)OrOutOfMemory("a note", [&] {
    note_(absl::StrCat("the store of sessions: ", status.message()));
    return absl::OkStatus();
  });
}

}  // namespace inlay::serve
