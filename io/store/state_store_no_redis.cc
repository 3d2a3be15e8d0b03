// In place of state_store_redis.cc where there is no hiredis.
#include "io/store/state_store_redis.h"

namespace inlay {

absl::StatusOr<std::unique_ptr<StateStore>> OpenRedisStore(RedisOptions) {
  return absl::UnimplementedError("this program was built without hiredis and knows no Redis");
}

}  // namespace inlay
