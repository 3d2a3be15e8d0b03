// Connections to one Redis server that are used again.
#ifndef INLAY_IO_STORE_REDIS_CONNECTIONS_H_
#define INLAY_IO_STORE_REDIS_CONNECTIONS_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "io/store/redis_connection.h"
#include "io/store/redis_options.h"

namespace inlay {

// A list of a thousand sessions reads each of them, and connecting and logging in takes longer than
// that. Safe to use from several threads; each connection is one user's at a time.
class RedisConnections {
 public:
  RedisConnections(RedisOptions options, size_t max_reply);

  // Gives a connection back when it ends, which may be after the RedisConnections.
  class Lease {
   public:
    Lease(Lease&&) noexcept = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease();
    RedisConnection* operator->() const { return connection_.get(); }
    RedisConnection& operator*() const { return *connection_; }

   private:
    friend class RedisConnections;
    struct Idle;
    Lease(std::shared_ptr<Idle> idle, std::unique_ptr<RedisConnection> connection)
        : idle_(std::move(idle)), connection_(std::move(connection)) {}
    std::shared_ptr<Idle> idle_;
    std::unique_ptr<RedisConnection> connection_;
  };

  // One that answers: a server that has been started anew, or that closes idle connections, costs
  // no error. The errors are those of RedisConnection::Connect.
  absl::StatusOr<Lease> Get();

 private:
  using Idle = Lease::Idle;
  const std::shared_ptr<Idle> idle_;
  const RedisOptions options_;
  const size_t max_reply_;
};

}  // namespace inlay

#endif  // INLAY_IO_STORE_REDIS_CONNECTIONS_H_
