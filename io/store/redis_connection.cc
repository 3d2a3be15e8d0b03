#include "io/store/redis_connection.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "hiredis/hiredis.h"

namespace inlay {
namespace {

struct ParsedReply {
  int type;
  RedisReply reply;
};

// What make() returns; null, for hiredis, where there is no memory for it. No exception may pass
// through the C code that calls this. The task's privdata is a bool that is then set, since hiredis
// reports any null as a lack of memory.
template <class Make>
void* NewForHiredis(const redisReadTask* task, const Make& make) {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    *static_cast<bool*>(task->privdata) = true;
    return nullptr;
  }
}

// The callbacks of hiredis for the elements of a reply. Returning null aborts the parse, with
// nothing allocated.
redisReplyObjectFunctions ReplyFunctions() {
  redisReplyObjectFunctions functions{};
  functions.createString = [](const redisReadTask* task, char* text, size_t size) {
    return NewForHiredis(task, [&] {
      return new ParsedReply{task->type, {RedisReply::Kind::kText, 0, std::string(text, size)}};
    });
  };
  functions.createInteger = [](const redisReadTask* task, long long value) {
    return NewForHiredis(task, [&] {
      return new ParsedReply{task->type, {RedisReply::Kind::kInteger, value, {}}};
    });
  };
  functions.createNil = [](const redisReadTask* task) {
    return NewForHiredis(task, [&] { return new ParsedReply{task->type, {}}; });
  };
  functions.freeObject = [](void* object) { delete static_cast<ParsedReply*>(object); };
  // The type of the count, and the two members after it, depend on hiredis's version.
  functions.createArray = [](const redisReadTask*, auto) -> void* { return nullptr; };
  [](auto& f) {
    if constexpr (requires { f.createDouble; }) {
      f.createDouble = [](const redisReadTask*, double, char*, size_t) -> void* { return nullptr; };
    }
    if constexpr (requires { f.createBool; }) {
      f.createBool = [](const redisReadTask*, int) -> void* { return nullptr; };
    }
  }(functions);
  return functions;
}

// The code for an error reply, which starts with a word in capitals, as Redis documents them at
// https://redis.io/docs/latest/develop/reference/protocol-spec/#simple-errors. Servers before
// version 7 report an error within a script after "ERR Error running script", with a '-' before it.
absl::StatusCode CodeOfError(absl::string_view text) {
  if (absl::StartsWith(text, "ERR Error running script")) {
    const size_t at = text.find(" -");
    if (at != absl::string_view::npos) text.remove_prefix(at + 2);
  }
  const absl::string_view word = text.substr(0, text.find(' '));
  if (word == "NOAUTH" || word == "WRONGPASS") return absl::StatusCode::kUnauthenticated;
  if (word == "NOPERM") return absl::StatusCode::kPermissionDenied;
  if (word == "OOM") return absl::StatusCode::kResourceExhausted;
  if (word == "WRONGTYPE") return absl::StatusCode::kFailedPrecondition;
  for (absl::string_view transient : {"LOADING", "BUSY", "MASTERDOWN", "MISCONF", "NOREPLICAS",
                                      "MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "READONLY"}) {
    if (word == transient) return absl::StatusCode::kUnavailable;
  }
  return absl::StatusCode::kInternal;
}

// What an error reply says. A node of a cluster answers "MOVED SLOT HOST:PORT" for a key whose slot
// another one has, or "ASK ..." while the slot moves there, as described at
// https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#redirection-and-resharding
std::string DescribeError(absl::string_view text) {
  text = text.substr(0, 200);
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ');
  if (words.size() != 3 || (words[0] != "MOVED" && words[0] != "ASK"))
    return absl::StrCat("says: ", absl::CHexEscape(text));
  return absl::StrCat("is a node of a cluster, in which slot ", absl::CHexEscape(words[1]),
                      " of this key is at ", absl::CHexEscape(words[2]),
                      ". That is not followed: name a node that has the slots of all keys, or a "
                      "proxy of the cluster");
}

redisReplyObjectFunctions& SharedReplyFunctions() {
  static redisReplyObjectFunctions functions = ReplyFunctions();
  return functions;
}

}  // namespace

RedisConnection::RedisConnection(const RedisOptions& options, size_t max_reply)
    : options_(options),
      max_reply_(max_reply),
      reader_(redisReaderCreateWithFunctions(&SharedReplyFunctions())) {
  if (reader_ != nullptr) reader_->privdata = &reply_lacked_memory_;
}

RedisConnection::~RedisConnection() {
  if (reader_ != nullptr) redisReaderFree(reader_);
  if (fd_ >= 0) close(fd_);
}

absl::Status RedisConnection::Failed(absl::StatusCode code, absl::string_view what) const {
  return absl::Status(code,
                      absl::StrCat("Redis at ", options_.host, ":", options_.port, " ", what));
}

absl::Status RedisConnection::Unreachable(int error) const {
  return Failed(absl::StatusCode::kUnavailable,
                absl::StrCat("cannot be reached: ", std::strerror(error)));
}

RedisConnection::Deadline RedisConnection::Begin(absl::Duration limit) {
  // At most a century: a longer time could overflow the clock.
  limit_ = std::min(limit, absl::Hours(24 * 36525));
  return std::chrono::steady_clock::now() + absl::ToChronoMicroseconds(limit_);
}

absl::Status RedisConnection::Wait(short events, Deadline deadline) {
  using std::chrono::milliseconds;
  using std::chrono::steady_clock;
  while (true) {
    const int64_t left =
        std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now()).count();
    pollfd entry{.fd = fd_, .events = events, .revents = 0};
    // One millisecond more than what is left, since it is rounded down: the last wait must not be a
    // busy one.
    const int ready =
        left < 0 ? 0 : poll(&entry, 1, static_cast<int>(std::min<int64_t>(left, 1'000'000)) + 1);
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return Failed(absl::StatusCode::kUnavailable, std::strerror(errno));
    if (steady_clock::now() >= deadline) {
      return Failed(absl::StatusCode::kDeadlineExceeded,
                    absl::StrCat("did not answer within ", absl::FormatDuration(limit_)));
    }
  }
}

absl::Status RedisConnection::OpenSocket(Deadline deadline) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const std::string port = absl::StrCat(options_.port);
  if (const int error = getaddrinfo(options_.host.c_str(), port.c_str(), &hints, &list);
      error != 0) {
    return Failed(absl::StatusCode::kUnavailable,
                  absl::StrCat("has no address: ", gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(list, freeaddrinfo);
  int left = 0;  // addresses that were not tried
  for (const addrinfo* address = list; address != nullptr; address = address->ai_next) ++left;
  absl::Status status = Failed(absl::StatusCode::kUnavailable, "has no address");
  for (const addrinfo* address = list; address != nullptr; address = address->ai_next, --left) {
    if (fd_ >= 0) close(fd_);
    fd_ = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                 address->ai_protocol);
    if (fd_ < 0) {
      // A family of addresses that this system does not have says nothing about the server.
      if (errno != EAFNOSUPPORT) status = Unreachable(errno);
      continue;
    }
    int error = 0;
    if (connect(fd_, address->ai_addr, address->ai_addrlen) != 0) error = errno;
    if (error == EINPROGRESS) {
      // One that does not answer leaves time for the others.
      const Deadline now = std::chrono::steady_clock::now();
      status = Wait(POLLOUT, now + (deadline - now) / left);
      if (!status.ok()) continue;
      socklen_t size = sizeof(error);
      if (getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    }
    if (error == 0) {
      const int yes = 1;  // a command is one message: send it at once
      setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
      return absl::OkStatus();
    }
    status = Unreachable(error);
  }
  return status;
}

absl::StatusOr<std::unique_ptr<RedisConnection>> RedisConnection::Connect(
    const RedisOptions& options, size_t max_reply) {
  std::unique_ptr<RedisConnection> connection(new RedisConnection(options, max_reply));
  if (connection->reader_ == nullptr) return absl::ResourceExhaustedError("no memory for hiredis");
  INLAY_RETURN_IF_ERROR(connection->OpenSocket(connection->Begin(options.timeout)));
  INLAY_RETURN_IF_ERROR(connection->LogIn());
  return connection;
}

absl::Status RedisConnection::LogIn() {
  if (!options_.password.empty()) {
    const absl::Status status = options_.user.empty()
                                    ? Command({"AUTH", options_.password}).status()
                                    : Command({"AUTH", options_.user, options_.password}).status();
    // Servers before version 6, and those that want no password, answer AUTH with a plain ERR.
    if (absl::IsInternal(status)) return absl::UnauthenticatedError(status.message());
    INLAY_RETURN_IF_ERROR(status);
  }
  if (options_.database != 0) {
    const absl::Status status = Command({"SELECT", absl::StrCat(options_.database)}).status();
    if (absl::IsInternal(status)) {
      return absl::InvalidArgumentError(
          absl::StrCat("database ", options_.database, ": ", status.message()));
    }
    INLAY_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

absl::Status RedisConnection::Send(absl::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t n = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0) {
      bytes.remove_prefix(static_cast<size_t>(n));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      INLAY_RETURN_IF_ERROR(Wait(POLLOUT, deadline));
    } else if (errno != EINTR) {
      return Failed(absl::StatusCode::kUnavailable,
                    absl::StrCat("closed the connection: ", std::strerror(errno)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<RedisReply> RedisConnection::Receive(Deadline deadline) {
  std::vector<char> buffer(64 * 1024);
  size_t received = 0;
  while (true) {
    void* object = nullptr;
    if (redisReaderGetReply(reader_, &object) != REDIS_OK) {
      if (reply_lacked_memory_) {
        return Failed(absl::StatusCode::kResourceExhausted, "sent more than there is memory for");
      }
      return Failed(absl::StatusCode::kDataLoss,
                    absl::StrCat("sent an invalid reply: ", absl::CHexEscape(reader_->errstr)));
    }
    if (object != nullptr) {
      const std::unique_ptr<ParsedReply> parsed(static_cast<ParsedReply*>(object));
      // Remaining bytes would be read as the reply to the next command.
      if (reader_->pos != reader_->len) {
        return Failed(absl::StatusCode::kDataLoss, "sent more than it was asked for");
      }
      if (parsed->type == REDIS_REPLY_ERROR) parsed->reply.kind = RedisReply::Kind::kError;
      return std::move(parsed->reply);
    }
    INLAY_RETURN_IF_ERROR(Wait(POLLIN, deadline));
    const ssize_t n = recv(fd_, buffer.data(), buffer.size(), 0);
    if (n == 0) return Failed(absl::StatusCode::kUnavailable, "closed the connection");
    if (n < 0) {
      if (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK) continue;
      return Failed(absl::StatusCode::kUnavailable, std::strerror(errno));
    }
    received += static_cast<size_t>(n);
    if (received > max_reply_) {
      return Failed(absl::StatusCode::kDataLoss,
                    absl::StrCat("sent a reply of more than ", max_reply_, " bytes"));
    }
    if (redisReaderFeed(reader_, buffer.data(), static_cast<size_t>(n)) != REDIS_OK) {
      return Failed(absl::StatusCode::kResourceExhausted, "sent more than there is memory for");
    }
  }
}

absl::StatusOr<RedisReply> RedisConnection::Command(absl::Span<const absl::string_view> words) {
  return CommandWithin(options_.timeout, words);
}

absl::StatusOr<RedisReply> RedisConnection::CommandWithin(
    absl::Duration limit, absl::Span<const absl::string_view> words) {
  INLAY_RETURN_IF_ERROR(broken_);
  std::vector<const char*> data;
  std::vector<size_t> sizes;
  for (absl::string_view word : words) {
    data.push_back(word.data());
    sizes.push_back(word.size());
  }
  char* bytes = nullptr;
  const auto size =
      redisFormatCommandArgv(&bytes, static_cast<int>(words.size()), data.data(), sizes.data());
  if (size < 0) return absl::ResourceExhaustedError("no memory for a command to Redis");
  const std::unique_ptr<char, void (*)(char*)> owned(bytes, [](char* c) { redisFreeCommand(c); });
  const Deadline deadline = Begin(limit);
  // Until the whole reply was read: whatever ends this function before, a lack of memory too, the
  // next command would get what is left of this one's reply.
  broken_ = Failed(absl::StatusCode::kUnavailable, "has a reply that was not read to its end");
  if (absl::Status sent = Send(absl::string_view(bytes, static_cast<size_t>(size)), deadline);
      !sent.ok())
    return broken_ = std::move(sent);
  absl::StatusOr<RedisReply> reply = Receive(deadline);
  broken_ = reply.status();
  if (!reply.ok() || reply->kind != RedisReply::Kind::kError) return reply;
  return Failed(CodeOfError(reply->text), DescribeError(reply->text));
}

}  // namespace inlay
