// Waiting in a test for what other threads and programs do.
#ifndef INLAY_TESTS_WAIT_UNTIL_H_
#define INLAY_TESTS_WAIT_UNTIL_H_

#include <chrono>
#include <thread>

#include "absl/time/time.h"

namespace inlay {

// The longest wait for one thing. What takes milliseconds on a quiet machine comes well before, on
// a busy one and under sanitizers too: no verdict depends on this time unless something hangs. It
// is shorter than the time limit of a ctest entry (cmake/InlayTest.cmake), so that the test itself
// can say what did not come.
inline constexpr std::chrono::minutes kLongWait{5};
inline constexpr int kLongWaitMs = std::chrono::milliseconds(kLongWait).count();  // for poll()

// Calls `condition()` every millisecond until it returns true. False if it has not by then.
template <class Condition>
[[nodiscard]] bool WaitUntil(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + kLongWait;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// Whether `attempt(time)` succeeds with some time from `first` on, of which each is twice the one
// before. For attempts in which something has to be done within `time`: on a busy machine a short
// time is over before.
template <class Attempt>
[[nodiscard]] bool WithSomeTime(absl::Duration first, Attempt attempt) {
  for (absl::Duration time = first; time < absl::Minutes(1); time *= 2) {
    if (attempt(time)) return true;
  }
  return false;
}

}  // namespace inlay

#endif  // INLAY_TESTS_WAIT_UNTIL_H_
