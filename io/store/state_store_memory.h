// States in memory.
#ifndef INLAY_IO_STORE_STATE_STORE_MEMORY_H_
#define INLAY_IO_STORE_STATE_STORE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
#include "io/store/state_store.h"

namespace inlay {

// Keeps states for as long as it lives; its readers and writers must not outlive it.
class MemoryStore final : public StateStore {
 public:
  // Commit is ResourceExhausted for a state with which all would have more than `most_bytes`. `now`
  // is a clock that is never set; tests give one of their own.
  explicit MemoryStore(uint64_t most_bytes = std::numeric_limits<uint64_t>::max(),
                       std::function<absl::Time()> now = SteadyNow)
      : most_bytes_(most_bytes), now_(std::move(now)) {}
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
    absl::Time used;  // when it was last used, by now_
  };
  using States = std::map<std::string, State>;
  void Erase(States::iterator state);  // under the lock

  const uint64_t most_bytes_;
  const std::function<absl::Time()> now_;
  std::mutex mutex_;
  States states_;
  uint64_t bytes_ = 0;  // of all
  StateTag last_tag_ = kNoStateTag;
};

}  // namespace inlay

#endif  // INLAY_IO_STORE_STATE_STORE_MEMORY_H_
