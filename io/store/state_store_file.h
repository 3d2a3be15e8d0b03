// States in files.
#ifndef INLAY_IO_STORE_STATE_STORE_FILE_H_
#define INLAY_IO_STORE_STATE_STORE_FILE_H_

#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/steady_time.h"
#include "io/file/file_kind.h"
#include "io/store/state_store.h"

namespace inlay {

// The clocks by which a FileStore tells for how long states were not used. Tests have others.
struct FileStoreClocks {
  std::function<absl::Time()> steady = SteadyNow;                   // is never set
  std::function<absl::Time()> system = [] { return absl::Now(); };  // files' times are of this one
};

// Keeps each state in a file of its own, accessible to its owner only (0600), in an existing
// folder. What Commit and Delete did is on the disk when they return. Files of other programs may
// be in the folder; those named KEY.state count as states. Tags tell only what this object has
// changed: PutOver takes a state that another process has replaced for the same one.
//
// When a state was last used, this object remembers by a clock that is never set, and later objects
// read from the time of the file's last change. ListUnused compares the times of files with the
// system's time of its first call, from which it goes on by that other clock: that somebody sets
// the system's clock meanwhile deletes no state. Where the system's clock is wrong at the first
// call, not all states may go at once: the time since a state was used, or since the folder was
// changed before this object was made, counts as half of ListUnused's `time` at most. So what was
// used within the half before that stays for now. Times in the future count as now.
class FileStore final : public StateStore {
 public:
  explicit FileStore(std::string folder, FileStoreClocks clocks = {});
  absl::StatusOr<std::unique_ptr<StateWriter>> PutOver(absl::string_view key,
                                                       StateTag replaced) override;
  absl::StatusOr<std::unique_ptr<StateReader>> Get(absl::string_view key) override;
  absl::Status Delete(absl::string_view key) override;
  absl::StatusOr<std::vector<std::string>> List(absl::string_view prefix) override;
  absl::StatusOr<size_t> Count(absl::string_view prefix) override;
  std::optional<size_t> KnownCount() override;
  absl::Status MarkUsed(absl::string_view key) override;
  absl::StatusOr<std::vector<std::string>> ListUnused(absl::string_view prefix,
                                                      absl::Duration time) override;
  absl::Status DeleteUnused(absl::string_view key, absl::Duration time) override;

 private:
  friend class FileStateWriter;
  // Of a state that was there before this object stored one under its key.
  static constexpr StateTag kFound = 1;
  // What this object knows of a state that it has stored, or whose use it was told of.
  struct Known {
    StateTag tag = kFound;
    absl::Time used;  // by FileStoreClocks::steady
  };
  // Of the keys with one hash: they are changed one after the other.
  struct Shard {
    std::mutex mutex;
    std::map<std::string, Known, std::less<>> known;
    StateTag last_tag = kFound;
  };

  std::string Path(absl::string_view key) const;
  Shard& ShardOf(absl::string_view key);
  // Under the shard's lock.
  StateTag TagOf(const Shard& shard, absl::string_view key) const;
  absl::Status Unlink(Shard& shard, absl::string_view key);
  // After a change of counted_, under its lock.
  void UpdateKnownCount() {
    if (counted_.has_value()) known_count_ = counted_->size();
  }
  // For how long the state was not used, whose file was last changed then; zero before ListUnused.
  absl::Duration UnusedFor(const Shard& shard, absl::string_view key, absl::Time changed);
  // Sets file_time_ for ListUnused(`time`), which has found states whose files were changed last at
  // these times, unless it is set already.
  void SetFileTime(absl::Span<const std::pair<std::string, absl::Time>> found, absl::Duration time);
  // Calls act() with the keys in the folder that begin with `prefix`, in no order, and with their
  // files, until it returns false.
  absl::Status ForEach(
      absl::string_view prefix,
      const std::function<bool(absl::string_view key, const struct stat& file)>& act) const;
  // The keys in the folder that begin with `prefix`, in no order, and no more than one too many.
  absl::StatusOr<std::vector<std::string>> Find(absl::string_view prefix, size_t most) const;

  const std::string folder_;
  const FileStoreClocks clocks_;
  const absl::Time last_change_;  // of the folder, before this object
  std::array<Shard, 16> shards_;
  // Taken last, after a shard's.
  std::mutex counted_mutex_;
  // For Count: the keys that the folder had when it was read, with what this object has changed
  // since. Nothing before the first call.
  std::optional<std::set<std::string, std::less<>>> counted_;
  // What it had when it was last changed, for those who may not wait for the lock: a list holds it
  // while the folder is read. kNotCounted before the first call.
  static constexpr size_t kNotCounted = ~size_t{0};
  std::atomic<size_t> known_count_ = kNotCounted;
  std::mutex unused_mutex_;  // guards the next member; taken alone, or after a shard's
  // The time of files minus that of FileStoreClocks::steady. Nothing before ListUnused.
  std::optional<absl::Duration> file_time_;
};

// One file of any name as a state, kSession or kChat: it is replaced atomically when the writer
// commits, if CheckReplace allows it. A new file is accessible to its owner only.
absl::StatusOr<std::unique_ptr<StateWriter>> WriteStateFile(const std::string& path, FileKind kind,
                                                            Replace replace = Replace::kSameKind);
// NotFound when there is no such file.
absl::StatusOr<std::unique_ptr<StateReader>> ReadStateFile(const std::string& path);

}  // namespace inlay

#endif  // INLAY_IO_STORE_STATE_STORE_FILE_H_
