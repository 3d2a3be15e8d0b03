#include "io/store/redis_connections.h"

#include <chrono>
#include <mutex>
#include <utility>
#include <vector>

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
    std::vector<Entry> old;  // closed after the lock
    const std::lock_guard lock(mutex);
    if (entries.empty()) return nullptr;
    if (std::chrono::steady_clock::now() - entries.back().since > kLongestIdle) {
      old.swap(entries);
      return nullptr;
    }
    std::unique_ptr<RedisConnection> connection = std::move(entries.back().connection);
    entries.pop_back();
    return connection;
  }

  void Give(std::unique_ptr<RedisConnection> connection) {
    if (connection->broken()) return;
    const std::lock_guard lock(mutex);
    if (entries.size() < kMostIdle)
      entries.push_back({std::move(connection), std::chrono::steady_clock::now()});
  }

  std::mutex mutex;
  std::vector<Entry> entries;
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
