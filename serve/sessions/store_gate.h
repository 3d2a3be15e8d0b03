// Keeps requests from waiting, one after the other, for a store that hangs.
#ifndef INLAY_SERVE_SESSIONS_STORE_GATE_H_
#define INLAY_SERVE_SESSIONS_STORE_GATE_H_

#include <mutex>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/out_of_memory.h"
#include "base/steady_time.h"

namespace inlay::serve {

// Once a use of the store has waited in vain, others fail at once; one at a time tries again. Safe
// to use from several threads.
class StoreGate {
 public:
  // A use that ends with Unavailable after `long_wait` closes the gate. From `rest` later on one
  // use is let through to try again; any other outcome opens the gate.
  StoreGate(absl::Duration long_wait, absl::Duration rest) : long_wait_(long_wait), rest_(rest) {}

  // The result of use(), an absl::Status or StatusOr; Unavailable without a call while the gate is
  // closed.
  template <class Use>
  auto Run(const Use& use) -> decltype(use()) {
    if (!Enter()) return absl::UnavailableError("the store of sessions does not answer");
    const absl::Time begin = SteadyNow();
    auto result = OrOutOfMemory("this session", use);
    const bool hangs = absl::IsUnavailable(StatusOf(result)) && SteadyNow() - begin >= long_wait_;
    const std::lock_guard lock(mutex_);
    closed_ = hangs;
    next_ = SteadyNow() + rest_;
    return result;
  }

 private:
  static const absl::Status& StatusOf(const absl::Status& status) { return status; }
  template <class T>
  static const absl::Status& StatusOf(const absl::StatusOr<T>& value) {
    return value.status();
  }

  bool Enter() {
    const std::lock_guard lock(mutex_);
    if (!closed_) return true;
    if (SteadyNow() < next_) return false;
    next_ = absl::InfiniteFuture();  // until this use has ended
    return true;
  }

  const absl::Duration long_wait_, rest_;
  std::mutex mutex_;  // guards the members below
  bool closed_ = false;
  absl::Time next_ = absl::InfinitePast();  // when another use is let through
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SESSIONS_STORE_GATE_H_
