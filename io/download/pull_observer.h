// What is told while a model is pulled.
#ifndef INLAY_IO_DOWNLOAD_PULL_OBSERVER_H_
#define INLAY_IO_DOWNLOAD_PULL_OBSERVER_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"

namespace inlay {

// Functions that are not set are not called.
struct PullObserver {
  // A sentence for the person who waits: a retry, another program's lock, work without the network.
  std::function<void(const std::string& sentence)> note = {};
  // How many of the model's bytes are here. Begins with what an earlier pull left, and may go back
  // where that turns out to be of no use.
  std::function<void(uint64_t done, uint64_t total)> progress = {};
  // Asked with each piece that arrives, and while a further attempt or another program's lock is
  // waited for; true ends the pull with Cancelled. What has arrived stays, for another pull to go
  // on.
  std::function<bool()> cancelled = {};

  absl::Status CheckCancelled() const {
    if (!cancelled || !cancelled()) return absl::OkStatus();
    return absl::CancelledError("the download was cancelled");
  }
};

}  // namespace inlay

#endif  // INLAY_IO_DOWNLOAD_PULL_OBSERVER_H_
