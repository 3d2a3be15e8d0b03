// Errors that are the server's own: what its operator is told of them, and what clients are.
#ifndef INLAY_SERVE_SERVICE_FAILURES_H_
#define INLAY_SERVE_SERVICE_FAILURES_H_

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "serve/notes/note.h"

namespace inlay::serve {

// Safe to use from several threads.
class Failures {
 public:
  // `note` is told one sentence a minute at most of each kind of error, by the thread that has met
  // it. The sentences hold no text of a request. May be null.
  explicit Failures(std::function<void(absl::string_view sentence)> note)
      : note_(std::move(note)) {}

  // What the client is told of an error of its answer or request: the status itself, but for that
  // of a model that cannot be read any more (IsUnreadableWeights), whose message names the file. Of
  // that one, of what becomes a 500 and of a lack of memory the operator is told, too.
  absl::Status ForClient(const absl::Status& status) noexcept;

  // Tells the operator of an error that the HTTP server itself replies with, if it is a 500 or 503.
  void TellRefusal(int http_status, absl::string_view message) noexcept;

  // OK until ForClient was given an error of a model that cannot be read any more; from then on
  // what clients are told of it.
  absl::Status weights() const;
  // The same with that error itself, which names the file: for the operator.
  absl::Status unreadable_weights() const;

 private:
  // Whether the operator may be told of an error of this kind again: it was told of none within the
  // last minute. False as well where there is no memory to know.
  bool MayTell(int http_status, absl::string_view message) noexcept;

  const Note note_;
  std::atomic<bool> weights_are_unreadable_ = false;
  mutable std::mutex mutex_;  // guards the next members
  absl::Status unreadable_weights_;
  // When the next sentence of each kind may be noted; see SteadyNow().
  std::map<std::string, absl::Time> next_;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_FAILURES_H_
