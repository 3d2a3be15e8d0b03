// Snapshots that servers leave for each other, on Redis or in a folder: each may be gone at any
// time, and all together keep to a budget of bytes.
#ifndef INLAY_IO_STORE_SNAPSHOT_STORE_H_
#define INLAY_IO_STORE_SNAPSHOT_STORE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "io/store/redis_options.h"

namespace inlay {

struct SnapshotStoreOptions {
  // Whether Write and Remove will be used: then Connect fails where a folder cannot be written.
  bool writes = true;
  std::string folder = {};  // where the snapshots are; on Redis if empty
  RedisOptions redis = {};  // its timeout bounds Connect and each command of Write
  // Of all snapshots together, those that are being written included. The same for all servers.
  uint64_t budget_bytes = uint64_t{1} << 30;
  absl::Duration expiry = absl::Hours(1);  // of a snapshot, from its last use
  // How long Write waits while another server writes in the folder.
  absl::Duration lock_limit = absl::Seconds(5);
};

// Values under names, written once: what a name stands for determines its value. Roots, which are
// names too, list the lengths (any numbers) that their snapshots have. Names have the characters of
// the keys of a StateStore.
//
// One thread uses a store. Every function may return an error of the server (see RedisConnection)
// or of the disk, FailedPrecondition before the first Connect among them. After any error only
// Connect helps.
class SnapshotStore {
 public:
  // The most bytes of one Read.
  static constexpr size_t kPieceBytes = size_t{1} << 20;

  virtual ~SnapshotStore() = default;

  // Connects, anew where there is a connection, and waits for a sign of life.
  virtual absl::Status Connect() = 0;

  // The lengths of the root's snapshots, in no order. Some of these may be gone.
  virtual absl::StatusOr<std::vector<size_t>> Lengths(absl::string_view root,
                                                      absl::Duration limit) = 0;

  // The first of these snapshots that is there; none where none is. It counts as used now.
  struct Found {
    size_t index = 0;    // in `names`
    uint64_t bytes = 0;  // of its value
  };
  virtual absl::StatusOr<std::optional<Found>> Find(absl::string_view root,
                                                    absl::Span<const std::string> names,
                                                    absl::Duration limit) = 0;

  // Appends `size` bytes of the value from `offset` on. False, with nothing appended, when the
  // snapshot is gone or ends before.
  virtual absl::StatusOr<bool> Read(absl::string_view name, uint64_t offset, size_t size,
                                    absl::Duration limit, std::string& value) = 0;

  // Stores the value, and its length in the root's list, in place of the least recently used
  // snapshots where the budget asks for that. True when it is there: also if it was before, which
  // then counts as used now. False when it is larger than the budget, was evicted while it was
  // written, or `stop()` became true, before or while it was written.
  virtual absl::StatusOr<bool> Write(absl::string_view root, absl::string_view name, size_t length,
                                     absl::string_view value,
                                     const std::function<bool()>& stop) = 0;

  virtual absl::Status Remove(absl::string_view name) = 0;
};

}  // namespace inlay

#endif  // INLAY_IO_STORE_SNAPSHOT_STORE_H_
