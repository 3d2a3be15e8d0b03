// Snapshots in the files of a folder.
#ifndef INLAY_IO_STORE_SNAPSHOT_STORE_FOLDER_H_
#define INLAY_IO_STORE_SNAPSHOT_STORE_FOLDER_H_

#include <memory>

#include "io/store/snapshot_store.h"

namespace inlay {

// Each snapshot is a file of its own, accessible to its owner only (0600), in options.folder, which
// exists. Other files may be there. Several processes may use the folder; a lock on it lets one
// write at a time. The time of a file's last change is that of its snapshot's last use, where the
// folder can be written. On a full disk the least recently used snapshots make room, too. A disk
// cannot be made to keep to a limit of time: what was asked of it for one file when the limit ends
// is waited for, and nothing after that is begun.
std::unique_ptr<SnapshotStore> OpenFolderSnapshots(SnapshotStoreOptions options);

}  // namespace inlay

#endif  // INLAY_IO_STORE_SNAPSHOT_STORE_FOLDER_H_
