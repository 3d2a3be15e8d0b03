// A store that a test lets wait.
#ifndef INLAY_TESTS_SERVE_SERVICE_GATED_STORE_H_
#define INLAY_TESTS_SERVE_SERVICE_GATED_STORE_H_

#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>

#include "tests/io/store/forwarding_store.h"
#include "tests/wait_until.h"

namespace inlay::serve {

// The states of another store, which are not changed while the gate is closed.
class GatedStore final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  void Close() { SetOpen(false); }
  void Open() { SetOpen(true); }
  // Until somebody waits at the closed gate.
  void WaitForOne() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kLongWait, [this] { return waiting_ > 0; }));
  }

  absl::StatusOr<std::unique_ptr<StateWriter>> PutOver(absl::string_view key,
                                                       StateTag replaced) override {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
    --waiting_;
    return ForwardingStore::PutOver(key, replaced);
  }

 private:
  void SetOpen(bool open) {
    const std::lock_guard lock(mutex_);
    open_ = open;
    changed_.notify_all();
  }

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  bool open_ = true;
  int waiting_ = 0;
};

}  // namespace inlay::serve

#endif  // INLAY_TESTS_SERVE_SERVICE_GATED_STORE_H_
