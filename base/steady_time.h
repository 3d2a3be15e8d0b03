// The time of a clock that is never set, for deadlines and durations.
#ifndef INLAY_BASE_STEADY_TIME_H_
#define INLAY_BASE_STEADY_TIME_H_

#include <chrono>

#include "absl/time/time.h"

namespace inlay {

// Goes on evenly where the system's clock is set or corrected. It counts from an arbitrary moment:
// a value is to be compared with other values of this function alone, in this process, and is no
// date. absl::Time keeps sums with an infinite duration infinite.
inline absl::Time SteadyNow() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace inlay

#endif  // INLAY_BASE_STEADY_TIME_H_
