#include "io/store/redis_connections.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <utility>

#include "absl/status/status.h"

namespace inlay {
namespace {

constexpr size_t kMostIdle = 8;
// What lies between may forget a connection that is silent for longer, and answers nothing then.
constexpr std::chrono::seconds kLongestIdle(30);

}  // namespace

struct RedisConnections::Lease::Idle {
  struct Entry {
    std::unique_ptr<RedisConnection> connection;
    std::chrono::steady_clock::time_point since;
  };

  // The one that was used last; none where it has been idle for long, as all others are then.
  std::unique_ptr<RedisConnection> Take() {
    std::array<Entry, kMostIdle> old;  // closed after the lock
    const std::lock_guard lock(mutex);
    if (count == 0) return nullptr;
    if (std::chrono::steady_clock::now() - entries[count - 1].since > kLongestIdle) {
      old.swap(entries);
      count = 0;
      return nullptr;
    }
    return std::move(entries[--count].connection);
  }

  // For a destructor: takes no memory.
  void Give(std::unique_ptr<RedisConnection> connection) noexcept {
    if (connection->broken()) return;
    const std::lock_guard lock(mutex);
    if (count < kMostIdle)
      entries[count++] = {std::move(connection), std::chrono::steady_clock::now()};
  }

  std::mutex mutex;
  std::array<Entry, kMostIdle> entries;  // the first `count`, most recently used last
  size_t count = 0;
};

RedisConnections::RedisConnections(RedisOptions options, size_t max_reply)
    : idle_(std::make_shared<Idle>()), options_(std::move(options)), max_reply_(max_reply) {}

RedisConnections::Lease::~Lease() {
  if (connection_ != nullptr) idle_->Give(std::move(connection_));
}

absl::StatusOr<RedisConnections::Lease> RedisConnections::Get() {
  if (std::unique_ptr<RedisConnection> connection = idle_->Take(); connection != nullptr) {
    const absl::StatusOr<RedisReply> reply = connection->Command({"PING"});
    // Any other reply may be that to an earlier command.
    if (reply.ok() && reply->kind == RedisReply::Kind::kText && reply->text == "PONG")
      return Lease(idle_, std::move(connection));
    // It took the time that a new one would have.
    if (absl::IsDeadlineExceeded(reply.status())) return reply.status();
  }
  absl::StatusOr<std::unique_ptr<RedisConnection>> connection =
      RedisConnection::Connect(options_, max_reply_);
  if (!connection.ok()) return connection.status();
  return Lease(idle_, *std::move(connection));
}

}  // namespace inlay
