#include "serve/sessions/session_expiry.h"

#include <algorithm>

#include "base/wait_for.h"

namespace inlay::serve {

absl::Duration SessionExpiry::PauseOf(const SessionLimits& limits) {
  return std::clamp(limits.ttl / 8, absl::Seconds(1), absl::Minutes(10));
}

SessionExpiry::SessionExpiry(SessionStore& store, absl::Duration pause)
    : store_(store), pause_(pause) {
  if (store.limits().ttl > absl::ZeroDuration()) thread_ = std::thread([this] { Run(); });
}

SessionExpiry::~SessionExpiry() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_one();
  thread_.join();
}

void SessionExpiry::Run() {
  while (true) {
    store_.RemoveUnused([this] {
      const std::lock_guard lock(mutex_);
      return stop_;
    });
    std::unique_lock lock(mutex_);
    if (WaitFor(stopped_, lock, pause_, [this] { return stop_; })) return;
  }
}

}  // namespace inlay::serve
