// Named states (saved conversations, for instance) kept in memory, in a folder or on a server.
#ifndef INLAY_IO_STORE_STATE_STORE_H_
#define INLAY_IO_STORE_STATE_STORE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
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
#include "absl/types/span.h"
#include "base/byte_stream.h"
#include "io/file/file_kind.h"

namespace inlay {

// Writes one state to a store, which is unchanged without Commit. After an error the writer can
// only be destroyed.
class StateWriter : public ByteSink {
 public:
  // Stores the appended bytes as the state of the key, atomically replacing an older one. Call
  // once, last.
  virtual absl::Status Commit() = 0;
};

// Names one state among all that its key has had: whatever was stored under the key before or after
// has another tag.
using StateTag = uint64_t;
inline constexpr StateTag kNoStateTag = 0;                                      // the key has none
inline constexpr StateTag kAnyStateTag = std::numeric_limits<StateTag>::max();  // whatever it has

// Reads one state from a store. Reading more than is left is OutOfRange.
class StateReader : public ByteSource {
 public:
  // Of the state that is read. kNoStateTag for a file that is in no store.
  virtual StateTag tag() const = 0;
};

// What a state begins with.
struct StateBeginning {
  std::string bytes;
  uint64_t state_bytes = 0;  // of the whole state
};

// All functions may be called from different threads at the same time. Keys are 1 to 100 characters
// out of A-Z a-z 0-9 . _ - and do not begin with a dot; others are refused with InvalidArgument.
// NotFound when a key has no state. A reader may get Aborted when its state is replaced or deleted.
class StateStore {
 public:
  virtual ~StateStore() = default;
  absl::StatusOr<std::unique_ptr<StateWriter>> Put(absl::string_view key) {
    return PutOver(key, kAnyStateTag);
  }
  // Commit compares and replaces in one step: it is Aborted, and changes nothing, unless the key's
  // state is still the one of this tag.
  virtual absl::StatusOr<std::unique_ptr<StateWriter>> PutOver(absl::string_view key,
                                                               StateTag replaced) = 0;
  virtual absl::StatusOr<std::unique_ptr<StateReader>> Get(absl::string_view key) = 0;
  // The first `most` bytes of a state, or all of one that has fewer, in one step where a server has
  // the state. Unlike Get it does not find each damage. `most` is at most kMostBeginning.
  static constexpr size_t kMostBeginning = size_t{64} << 10;
  virtual absl::StatusOr<StateBeginning> ReadBeginning(absl::string_view key, size_t most);
  virtual absl::Status Delete(absl::string_view key) = 0;
  // The keys that begin with `prefix`, ascending, at most kMostListed: ResourceExhausted where
  // there are more. States that are stored or deleted meanwhile may be among them or not.
  static constexpr size_t kMostListed = 100'000;
  virtual absl::StatusOr<std::vector<std::string>> List(absl::string_view prefix) = 0;
  // How many keys begin with `prefix`. Unlike List it takes no longer for the states of other keys,
  // but for a first call, and on Redis one an hour. What other programs have stored or deleted may
  // be missing from the number until List is called: whoever refuses something for it lists before.
  virtual absl::StatusOr<size_t> Count(absl::string_view prefix) = 0;
};

absl::Status CheckStateKey(absl::string_view key);
absl::Status NoSuchState(absl::string_view key);
absl::Status TooManyStates(absl::string_view prefix);
absl::Status StateWasReplaced(absl::string_view key);

// Keeps states for as long as it lives; its readers and writers must not outlive it.
class MemoryStore final : public StateStore {
 public:
  // Commit is ResourceExhausted for a state with which all would have more bytes.
  explicit MemoryStore(uint64_t most_bytes = std::numeric_limits<uint64_t>::max())
      : most_bytes_(most_bytes) {}
  absl::StatusOr<std::unique_ptr<StateWriter>> PutOver(absl::string_view key,
                                                       StateTag replaced) override;
  absl::StatusOr<std::unique_ptr<StateReader>> Get(absl::string_view key) override;
  absl::Status Delete(absl::string_view key) override;
  absl::StatusOr<std::vector<std::string>> List(absl::string_view prefix) override;
  absl::StatusOr<size_t> Count(absl::string_view prefix) override;

  // Of all states.
  uint64_t bytes() {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  friend class MemoryStateWriter;
  struct State {
    std::shared_ptr<const std::vector<uint8_t>> bytes;
    StateTag tag;
  };

  const uint64_t most_bytes_;
  std::mutex mutex_;
  std::map<std::string, State> states_;
  uint64_t bytes_ = 0;  // of all
  StateTag last_tag_ = kNoStateTag;
};

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

#endif  // INLAY_IO_STORE_STATE_STORE_H_
