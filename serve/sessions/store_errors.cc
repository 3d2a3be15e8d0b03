#include "serve/sessions/store_errors.h"

#include "base/steady_time.h"

namespace inlay::serve {

absl::Status StoreErrors::OfStore(const absl::Status& status) {
  if (status.ok() || absl::IsAborted(status)) {
    Answered();
    return status;
  }
  up_ = !absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status);
  Failed(status);
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

bool StoreErrors::IsNotThere(const absl::Status& status) {
  if (!absl::IsNotFound(status)) return false;
  Answered();
  return true;
}

void StoreErrors::NoteUnreadable(const std::string& key, const absl::Status& why) {
  {
    const std::lock_guard lock(mutex_);
    if (unreadable_.size() >= kMostUnreadable || !unreadable_.insert(key).second) return;
  }
  note_.Tell("the store of sessions, key ", key, ": ", why.message());
}

void StoreErrors::Failed(const absl::Status& status) {
  {
    const std::lock_guard lock(mutex_);
    const absl::Time now = SteadyNow();
    if (now < next_note_) return;
    next_note_ = now + absl::Minutes(1);
    told_away_ = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
  }
  note_.Tell("the store of sessions: ", status.message());
}

void StoreErrors::Answered() {
  up_ = true;
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(told_away_, false)) return;
  }
  note_.Tell("the store of sessions: it answers again");
}

}  // namespace inlay::serve
