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
// Of one call that fails because of the server: a few commands. What waits for ever takes longer.
inline constexpr absl::Duration kRedisPatience = absl::Minutes(2);

inline std::unique_ptr<StateStore> OpenRedis(uint16_t port,
                                             absl::Duration timeout = absl::Minutes(5)) {
  return Must(OpenRedisStore({.port = port, .timeout = timeout}));
}

}  // namespace inlay

#endif  // INLAY_TESTS_IO_STORE_OPEN_REDIS_H_
