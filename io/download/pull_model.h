// From the name of a model to its files on this machine.
#ifndef INLAY_IO_DOWNLOAD_PULL_MODEL_H_
#define INLAY_IO_DOWNLOAD_PULL_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "io/download/pull_observer.h"
#include "io/download/retry.h"
#include "io/hub/environment.h"
#include "io/hub/hub_cache.h"
#include "io/hub/hub_name.h"

namespace inlay {

struct PullOptions {
  HubAccess access;
  std::string cache_folder;
  RetryPolicy retry = {};
};

struct PulledModel {
  std::vector<std::string> files;  // paths, in the order of the model's parts
  std::string type;                // the quantization that their name tells; may be empty
  uint64_t bytes = 0;              // of all files
  uint64_t transferred = 0;        // bytes that came over the network now
};

// The model's files in the cache, with what is missing downloaded: the files that ChooseFiles
// chooses of those that the repository's branch "main" has now.
//
// A file is checked by its size and hash before the cache shows it; no file of a model is shown
// before all of them are there. Where a request fails in a way that may pass (Unavailable), or the
// access says that the network is not to be used, the files that the cache has are the answer, and
// a note says so. Errors are those of HttpGetter, RefusalOf, ParseRepoListing, ChooseFiles and
// FetchBlob.
absl::StatusOr<PulledModel> PullModel(const HubName& name, const PullOptions& options,
                                      const PullObserver& observer);

}  // namespace inlay

#endif  // INLAY_IO_DOWNLOAD_PULL_MODEL_H_
