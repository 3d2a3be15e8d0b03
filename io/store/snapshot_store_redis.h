// Snapshots on a Redis server.
#ifndef INLAY_IO_STORE_SNAPSHOT_STORE_REDIS_H_
#define INLAY_IO_STORE_SNAPSHOT_STORE_REDIS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "io/store/snapshot_store.h"

namespace inlay {

// All keys are in one slot of a cluster; the budget is that of all servers which use the same
// prefix of keys in one database. Changes of a snapshot are scripts, each one step on the server.
// Memory besides the budget: about 300 bytes for a snapshot.
//
// InvalidArgument for options that cannot work; Unimplemented when this program was built without
// hiredis.
absl::StatusOr<std::unique_ptr<SnapshotStore>> OpenRedisSnapshots(SnapshotStoreOptions options);

}  // namespace inlay

#endif  // INLAY_IO_STORE_SNAPSHOT_STORE_REDIS_H_
