// Named states (saved conversations, for instance): kept in memory (state_store_memory.h), in a
// folder (state_store_file.h) or on a server (state_store_redis.h).
#ifndef INLAY_IO_STORE_STATE_STORE_H_
#define INLAY_IO_STORE_STATE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/byte_stream.h"

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
  // The number of all keys, as far as this object knows it without waiting for a disk or a server:
  // in a folder only once Count was called, and on Redis never.
  virtual std::optional<size_t> KnownCount() = 0;

  // States that nobody uses: a state is used when it is stored, and when MarkUsed is called. Get is
  // no use of it. MarkUsed is OK also for a key without a state.
  virtual absl::Status MarkUsed(absl::string_view key) = 0;
  // The keys that begin with `prefix` of states that were not used for `time`, in no order. None on
  // Redis, which deletes such states itself (RedisOptions::expiry).
  virtual absl::StatusOr<std::vector<std::string>> ListUnused(absl::string_view prefix,
                                                              absl::Duration time) = 0;
  // Deletes a state that ListUnused has named, unless it was used since. OK also where it is gone.
  virtual absl::Status DeleteUnused(absl::string_view key, absl::Duration time) = 0;
};

absl::Status CheckStateKey(absl::string_view key);
absl::Status NoSuchState(absl::string_view key);
absl::Status TooManyStates(absl::string_view prefix);
absl::Status StateWasReplaced(absl::string_view key);

}  // namespace inlay

#endif  // INLAY_IO_STORE_STATE_STORE_H_
