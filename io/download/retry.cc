#include "io/download/retry.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace inlay {

absl::Status Retry::Wait(const absl::Status& error, absl::Duration least) {
  if (!absl::IsUnavailable(error)) return error;
  if (least > policy_.longest_wait) {
    return absl::UnavailableError(
        absl::StrCat(error.message(), "; it asks to be left alone for ",
                     absl::FormatDuration(absl::Ceil(least, absl::Seconds(1)))));
  }
  if (++failed_ >= policy_.attempts) return error;
  absl::Duration wait = policy_.first_wait;
  for (int i = 1; i < failed_; ++i) wait *= 2;
  wait = std::min(std::max(wait, least), policy_.longest_wait);
  if (observer_.note) {
    observer_.note(absl::StrCat(error.message(), "; trying again in ", absl::FormatDuration(wait)));
  }
  constexpr absl::Duration kSlice = absl::Milliseconds(100);
  for (; wait > absl::ZeroDuration(); wait -= kSlice) {
    if (absl::Status status = observer_.CheckCancelled(); !status.ok()) return status;
    absl::SleepFor(std::min(wait, kSlice));
  }
  return absl::OkStatus();
}

}  // namespace inlay
