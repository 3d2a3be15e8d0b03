// Errors of the store of sessions: what clients are told, and what the server's operator is.
#ifndef INLAY_SERVE_SESSIONS_STORE_ERRORS_H_
#define INLAY_SERVE_SESSIONS_STORE_ERRORS_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "serve/notes/note.h"

namespace inlay::serve {

// Safe to use from several threads.
class StoreErrors {
 public:
  // `note` is told errors in full, one a minute at most, by the thread that has met one; and that
  // the store answers again, where it was told that it did not. It may be null.
  explicit StoreErrors(std::function<void(absl::string_view sentence)> note)
      : note_(std::move(note)) {}

  // An error of the store as one of the server, since codes such as PermissionDenied would tell a
  // client that its request is at fault. The store's own message, which may have its address or a
  // path, is left out. Where the store may answer again, the client may try again (Unavailable). OK
  // stays, and so does Aborted: another server has changed the session.
  absl::Status OfStore(const absl::Status& status);
  // Whether the store has answered that it has no such state, which is no error of it.
  bool IsNotThere(const absl::Status& status);

  // Tells `note` why the state of this key cannot be read: once, and of the first kMostUnreadable
  // keys.
  static constexpr size_t kMostUnreadable = 100;
  void NoteUnreadable(const std::string& key, const absl::Status& why);

  // Whether the store has answered when it was last asked; true until then.
  bool up() const { return up_; }

 private:
  void Failed(const absl::Status& status);
  void Answered();

  const Note note_;
  std::atomic<bool> up_ = true;
  std::mutex mutex_;                             // guards the members below
  absl::Time next_note_ = absl::InfinitePast();  // not before; see SteadyNow()
  bool told_away_ = false;                       // that it does not answer, and nothing since
  std::set<std::string> unreadable_;             // keys that were told
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SESSIONS_STORE_ERRORS_H_
