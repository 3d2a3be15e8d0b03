// Sessions in a state store, each client's apart from all others'.
#ifndef INLAY_SERVE_SESSIONS_SESSION_STORE_H_
#define INLAY_SERVE_SESSIONS_SESSION_STORE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "io/store/state_store.h"
#include "serve/sessions/session.h"
#include "serve/sessions/store_errors.h"
#include "serve/sessions/store_gate.h"

namespace inlay::serve {

struct SessionLimits {
  size_t most_sessions = 1000;           // of one client
  size_t most_bytes = size_t{32} << 20;  // of one session as a document
  // How long a session is kept after its last use: Load, or what stores it. Zero: for ever.
  absl::Duration ttl = absl::ZeroDuration();
  // Of a store that hangs: see StoreGate.
  absl::Duration long_wait = absl::Seconds(1);
  absl::Duration rest = absl::Seconds(1);
};

// What a list of sessions tells of one.
struct SessionSummary {
  std::string name;
  uint64_t version = 0;
  size_t length = 0;                 // in tokens
  int64_t created = 0, updated = 0;  // seconds since 1970
  std::string title;                 // see Session::Title
  std::string root;                  // see Session
  uint64_t bytes = 0;                // in the store
  // Why it cannot be read, so that only its name and size are known; "": it can.
  std::string unreadable = {};
};

// Keeps nothing itself: what it returns is in the store, and what it has saved is there when it
// returns. Sessions of one name that belong to different clients (`client`: any text) are different
// ones. The functions wait for the store; once it has kept one of them waiting in vain, all but
// Save fail with Unavailable at once for a while (see StoreGate). Safe to use from several
// threads. Several servers may have the same sessions on one Redis server: of two that change a
// session at the same time, the store takes the first one's change, and the other gets Aborted.
class SessionStore {
 public:
  // `note`: see StoreErrors, by which errors of the store are told.
  SessionStore(std::shared_ptr<StateStore> store, SessionLimits limits,
               std::function<void(absl::string_view sentence)> note = nullptr)
      : store_(std::move(store)),
        limits_(limits),
        errors_(std::move(note)),
        gate_(limits.long_wait, limits.rest) {}

  // While it exists, nobody else in this process changes the session. It must not outlive the
  // store.
  class Hold {
   public:
    Hold(Hold&& other) noexcept
        : store_(std::exchange(other.store_, nullptr)),
          key_(std::move(other.key_)),
          replaces_(other.replaces_) {}
    Hold& operator=(Hold&&) = delete;
    ~Hold();

   private:
    friend class SessionStore;
    Hold(SessionStore* store, std::string key) : store_(store), key_(std::move(key)) {}
    SessionStore* store_;
    std::string key_;
    StateTag replaces_ = kNoStateTag;  // what Save replaces
  };

  // To change the session of this name, or to make it: Aborted when another thread holds it,
  // InvalidArgument for what is no name.
  absl::StatusOr<Hold> Acquire(absl::string_view client, absl::string_view name);

  // NotFound when there is no such session, DataLoss when it is damaged or of another format, of
  // which `note` is told; or an error of the store.
  absl::StatusOr<Session> Load(absl::string_view client, absl::string_view name);
  // The same for one that is to be changed: Save replaces it alone.
  absl::StatusOr<Session> Load(Hold& hold, absl::string_view name);

  // AlreadyExists; PermissionDenied when the client has the most sessions, which servers that make
  // some at the same time count each for itself: no code that has clients try again, as only
  // deleting helps; errors of Save.
  absl::Status Create(const Hold& hold, absl::string_view client, const Session& session);

  // Replaces the session that was loaded with the hold, in one step, once. Aborted when it was
  // changed or deleted by another server since; OutOfRange when it is larger than it may be; else
  // an error of the store, after which the store has the session as it was or, if it could not tell
  // in time, as it is to be.
  absl::Status Save(const Hold& hold, const Session& session);

  // NotFound when there is no such session.
  absl::Status Delete(const Hold& hold, absl::string_view name);

  // The client's sessions by their names, ascending, with those that cannot be read.
  absl::StatusOr<std::vector<SessionSummary>> List(absl::string_view client);

  // Removes the sessions, of all clients, that were not used for SessionLimits::ttl, but none that
  // is held, until `stop()` becomes true; nothing without a ttl, or on Redis, which does it itself.
  // Waits for the store, of whose errors `note` is told. To be called from one thread.
  void RemoveUnused(const std::function<bool()>& stop) noexcept;

  const SessionLimits& limits() const { return limits_; }
  // See StoreErrors.
  bool up() const { return errors_.up(); }
  // How many sessions there are, of all clients, and how many of them are held. The first is what
  // StateStore::KnownCount tells, also of other programs' states. Neither waits for the store.
  std::optional<size_t> KnownCount() const { return store_->KnownCount(); }
  size_t held() const {
    const std::lock_guard lock(mutex_);
    return held_.size();
  }

 private:
  absl::Status CountAndCreate(const Hold& hold, absl::string_view client, const Session& session);
  absl::StatusOr<std::vector<SessionSummary>> ReadList(absl::string_view client);
  // The session under this key, and its tag.
  absl::StatusOr<std::pair<Session, StateTag>> LoadTagged(const std::string& key,
                                                          absl::string_view name);
  // Nothing where somebody holds it.
  std::optional<Hold> TryHold(std::string key);
  void Release(const std::string& key);

  const std::shared_ptr<StateStore> store_;
  const SessionLimits limits_;
  StoreErrors errors_;
  StoreGate gate_;
  // So that sessions are counted one after the other: held while the store is waited for.
  std::mutex creating_;
  mutable std::mutex mutex_;  // guards the next member
  std::set<std::string> held_;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SESSIONS_SESSION_STORE_H_
