// One connection to a Redis server, with a time limit on everything.
#ifndef INLAY_IO_STORE_REDIS_CONNECTION_H_
#define INLAY_IO_STORE_REDIS_CONNECTION_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "io/store/redis_options.h"

struct redisReader;

namespace inlay {

struct RedisReply {
  // kError is internal to RedisConnection: Command turns it into a status.
  enum class Kind { kNil, kInteger, kText, kError };
  Kind kind = Kind::kNil;
  int64_t integer = 0;
  std::string text;
};

// The class has its own socket code, so that no call exceeds its time limit and a closed connection
// is an error and not a signal; hiredis only formats commands and parses replies. The server is not
// trusted: a reply has at most max_reply bytes, arrays, which no command here asks for, are refused
// before memory is allocated for them, and so is a reply without a command.
class RedisConnection {
 public:
  // Connects, and logs in where the options say so. Unavailable or DeadlineExceeded;
  // Unauthenticated when the server refuses the password, InvalidArgument when it refuses the
  // database; or another error of Command.
  static absl::StatusOr<std::unique_ptr<RedisConnection>> Connect(const RedisOptions& options,
                                                                  size_t max_reply);
  RedisConnection(const RedisConnection&) = delete;
  RedisConnection& operator=(const RedisConnection&) = delete;
  ~RedisConnection();

  // Sends one command and waits for its reply. After an error of the connection (Unavailable,
  // DeadlineExceeded, DataLoss, or ResourceExhausted for a reply without the memory for it) every
  // later command fails too, and so after std::bad_alloc. The connection stays usable after an
  // error reply, whose first word determines the status:
  //   NOAUTH, WRONGPASS                                  Unauthenticated
  //   NOPERM                                             PermissionDenied
  //   OOM                                                ResourceExhausted
  //   WRONGTYPE                                          FailedPrecondition
  //   LOADING, BUSY, MASTERDOWN, MISCONF, NOREPLICAS     Unavailable
  //   READONLY                                           Unavailable
  //   MOVED, ASK, TRYAGAIN, CLUSTERDOWN                  Unavailable: redirections of a cluster are
  //                                                      not followed
  //   any other                                          Internal
  absl::StatusOr<RedisReply> Command(absl::Span<const absl::string_view> words);
  absl::StatusOr<RedisReply> Command(std::initializer_list<absl::string_view> words) {
    return Command(absl::MakeConstSpan(words.begin(), words.size()));
  }
  // The same with a time limit of its own in the place of RedisOptions::timeout.
  absl::StatusOr<RedisReply> CommandWithin(absl::Duration limit,
                                           absl::Span<const absl::string_view> words);

  // After an error of the connection, when no further command can succeed.
  bool broken() const { return !broken_.ok(); }

 private:
  // Of a monotonic clock.
  using Deadline = std::chrono::steady_clock::time_point;

  RedisConnection(const RedisOptions& options, size_t max_reply);
  // Begins an operation that may take `limit`.
  Deadline Begin(absl::Duration limit);
  absl::Status OpenSocket(Deadline deadline);
  absl::Status Send(absl::string_view bytes, Deadline deadline);
  absl::StatusOr<RedisReply> Receive(Deadline deadline);
  absl::Status LogIn();
  // Waits until the socket is ready for `events` of poll().
  absl::Status Wait(short events, Deadline deadline);
  absl::Status Failed(absl::StatusCode code, absl::string_view what) const;
  absl::Status Unreachable(int error) const;  // an errno

  RedisOptions options_;
  size_t max_reply_;
  absl::Duration limit_;  // of the current operation
  int fd_ = -1;
  bool reply_lacked_memory_ = false;  // reader_ found no memory for a reply
  redisReader* reader_ = nullptr;
  absl::Status broken_;
};

}  // namespace inlay

#endif  // INLAY_IO_STORE_REDIS_CONNECTION_H_
