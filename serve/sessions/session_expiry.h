// Removes sessions that nobody has used for a while, as long as a server runs.
#ifndef INLAY_SERVE_SESSIONS_SESSION_EXPIRY_H_
#define INLAY_SERVE_SESSIONS_SESSION_EXPIRY_H_

#include <condition_variable>
#include <mutex>
#include <thread>

#include "absl/time/time.h"
#include "serve/sessions/session_store.h"

namespace inlay::serve {

// A thread that calls SessionStore::RemoveUnused at once and then again and again. There is none
// where sessions do not expire.
class SessionExpiry {
 public:
  // The pause between two removals: an eighth of the sessions' time to live, but at least a second
  // and at most ten minutes.
  static absl::Duration PauseOf(const SessionLimits& limits);

  // The store must outlive the object. Throws where the system refuses a thread.
  explicit SessionExpiry(SessionStore& store) : SessionExpiry(store, PauseOf(store.limits())) {}
  SessionExpiry(SessionStore& store, absl::Duration pause);
  // Waits for the session that is being removed.
  ~SessionExpiry();
  SessionExpiry(const SessionExpiry&) = delete;
  SessionExpiry& operator=(const SessionExpiry&) = delete;

 private:
  void Run();

  SessionStore& store_;
  const absl::Duration pause_;
  std::mutex mutex_;  // guards stop_
  bool stop_ = false;
  std::condition_variable stopped_;
  std::thread thread_;  // last: it uses all others
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SESSIONS_SESSION_EXPIRY_H_
