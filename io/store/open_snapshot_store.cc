#include "io/store/open_snapshot_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "io/store/snapshot_store_folder.h"
#include "io/store/snapshot_store_redis.h"

namespace inlay {

absl::StatusOr<std::unique_ptr<SnapshotStore>> OpenSnapshotStore(SnapshotStoreOptions options) {
  if (options.expiry < absl::Milliseconds(1)) {
    return absl::InvalidArgumentError(absl::StrCat("the expiry of snapshots ",
                                                   absl::FormatDuration(options.expiry),
                                                   " is shorter than a millisecond"));
  }
  if (!options.folder.empty()) return OpenFolderSnapshots(std::move(options));
  return OpenRedisSnapshots(std::move(options));
}

}  // namespace inlay
