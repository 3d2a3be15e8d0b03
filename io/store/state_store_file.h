// States in files.
#ifndef INLAY_IO_STORE_STATE_STORE_FILE_H_
#define INLAY_IO_STORE_STATE_STORE_FILE_H_

#include <array>
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
#include "io/file/file_kind.h"
#include "io/store/state_store.h"

namespace inlay {

// Keeps each state in a file of its own, accessible to its owner only (0600), in an existing
// folder. What Commit and Delete did is on the disk when they return. Files of other programs may
// be in the folder; those named KEY.state count as states. Tags tell only what this object has
// changed: PutOver takes a state that another process has replaced for the same one.
class FileStore final : public StateStore {
 public:
  explicit FileStore(std::string folder) : folder_(std::move(folder)) {}
  absl::StatusOr<std::unique_ptr<StateWriter>> PutOver(absl::string_view key,
                                                       StateTag replaced) override;
  absl::StatusOr<std::unique_ptr<StateReader>> Get(absl::string_view key) override;
  absl::Status Delete(absl::string_view key) override;
  absl::StatusOr<std::vector<std::string>> List(absl::string_view prefix) override;
  absl::StatusOr<size_t> Count(absl::string_view prefix) override;

 private:
  friend class FileStateWriter;
  // Of the keys with one hash: they are changed one after the other.
  struct Shard {
    std::mutex mutex;
    std::map<std::string, StateTag, std::less<>> tags;  // of the states that this object has stored
    StateTag last_tag = kFound;
  };
  // Of a state that was there before this object stored one under its key.
  static constexpr StateTag kFound = 1;

  std::string Path(absl::string_view key) const;
  Shard& ShardOf(absl::string_view key);
  // Under the shard's lock.
  StateTag TagOf(const Shard& shard, absl::string_view key) const;
  // The keys in the folder that begin with `prefix`, in no order, and no more than one too many.
  absl::StatusOr<std::vector<std::string>> Find(absl::string_view prefix, size_t most) const;

  std::string folder_;
  std::array<Shard, 16> shards_;
  // Taken last, after a shard's.
  std::mutex counted_mutex_;
  // For Count: the keys that the folder had when it was read, with what this object has changed
  // since. Nothing before the first call.
  std::optional<std::set<std::string, std::less<>>> counted_;
};

// One file of any name as a state, kSession or kChat: it is replaced atomically when the writer
// commits, if CheckReplace allows it. A new file is accessible to its owner only.
absl::StatusOr<std::unique_ptr<StateWriter>> WriteStateFile(const std::string& path, FileKind kind,
                                                            Replace replace = Replace::kSameKind);
// NotFound when there is no such file.
absl::StatusOr<std::unique_ptr<StateReader>> ReadStateFile(const std::string& path);

}  // namespace inlay

#endif  // INLAY_IO_STORE_STATE_STORE_FILE_H_
