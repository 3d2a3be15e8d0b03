// Snapshots at the place that options name.
#ifndef INLAY_IO_STORE_OPEN_SNAPSHOT_STORE_H_
#define INLAY_IO_STORE_OPEN_SNAPSHOT_STORE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "io/store/snapshot_store.h"

namespace inlay {

// See OpenFolderSnapshots and OpenRedisSnapshots. InvalidArgument for options that cannot work.
absl::StatusOr<std::unique_ptr<SnapshotStore>> OpenSnapshotStore(SnapshotStoreOptions options);

}  // namespace inlay

#endif  // INLAY_IO_STORE_OPEN_SNAPSHOT_STORE_H_
