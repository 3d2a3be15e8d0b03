// Waiting under a lock for no longer than a given time.
#ifndef INLAY_BASE_WAIT_FOR_H_
#define INLAY_BASE_WAIT_FOR_H_

#include <condition_variable>
#include <mutex>

#include "absl/time/time.h"

namespace inlay {

// Waits until `done()` is true, or for `most`, and returns what it then is. `done` is called under
// the lock, when the waiting begins and whenever `changed` is notified. From a year on `most` is
// for ever: adding it to the time of a clock might overflow.
template <class Done>
bool WaitFor(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
             absl::Duration most, Done done) {
  if (most < absl::Hours(24 * 365))
    return changed.wait_for(lock, absl::ToChronoNanoseconds(most), done);
  changed.wait(lock, done);
  return true;
}

}  // namespace inlay

#endif  // INLAY_BASE_WAIT_FOR_H_
