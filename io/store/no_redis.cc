// Replaces state_store_redis.cc and snapshot_store_redis.cc in builds without hiredis.
#include "io/store/snapshot_store_redis.h"
#include "io/store/state_store_redis.h"

namespace inlay {

absl::StatusOr<std::unique_ptr<StateStore>> OpenRedisStore(RedisOptions) {
  return absl::UnimplementedError(
      "this program was built without hiredis, so it has no Redis store");
}

absl::Status CheckRedisRights(const RedisOptions&) { return OpenRedisStore({}).status(); }

absl::StatusOr<std::unique_ptr<SnapshotStore>> OpenRedisSnapshots(SnapshotStoreOptions) {
  return absl::UnimplementedError(
      "this program was built without hiredis, so it has no snapshots on Redis");
}

}  // namespace inlay
