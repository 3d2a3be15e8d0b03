// What is told while a model is pulled.
#ifndef INLAY_IO_DOWNLOAD_PULL_OBSERVER_H_
#define INLAY_IO_DOWNLOAD_PULL_OBSERVER_H_

#include <cstdint>
#include <functional>
#include <string>

namespace inlay {

// Functions that are not set are not called.
struct PullObserver {
  // A sentence for the person who waits: a retry, another program's lock, work without the network.
  std::function<void(const std::string& sentence)> note = {};
  // How many of the model's bytes are here. Begins with what an earlier pull left, and may go back
  // where that turns out to be of no use.
  std::function<void(uint64_t done, uint64_t total)> progress = {};
};

}  // namespace inlay

#endif  // INLAY_IO_DOWNLOAD_PULL_OBSERVER_H_
