// Stores of states on a Redis server of this machine.
#ifndef INLAY_TESTS_IO_STORE_OPEN_REDIS_H_
#define INLAY_TESTS_IO_STORE_OPEN_REDIS_H_

#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "io/store/state_store_redis.h"
#include "tests/must.h"

namespace inlay {

// Of a store whose server fails.
inline constexpr absl::Duration kRedisTimeout = absl::Milliseconds(300);
// Of one call that fails because of the server: a few commands, on a busy machine.
inline constexpr absl::Duration kRedisPatience = absl::Seconds(5);

inline std::unique_ptr<StateStore> OpenRedis(uint16_t port,
                                             absl::Duration timeout = absl::Seconds(20)) {
  return Must(OpenRedisStore({.port = port, .timeout = timeout}));
}

}  // namespace inlay

#endif  // INLAY_TESTS_IO_STORE_OPEN_REDIS_H_
