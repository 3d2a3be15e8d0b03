// Gets one file of a repository into the cache.
#ifndef INLAY_IO_DOWNLOAD_FETCH_BLOB_H_
#define INLAY_IO_DOWNLOAD_FETCH_BLOB_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "io/download/http_getter.h"
#include "io/download/pull_observer.h"
#include "io/download/retry.h"
#include "io/hub/hub_cache.h"
#include "io/hub/hub_name.h"

namespace inlay {

struct BlobRequest {
  HubName name;      // of the repository
  std::string what;  // for messages: "USER/REPO, model.gguf"
  std::string url;
  std::string commit;  // that `url` belongs to
  uint64_t size = 0;   // bytes
  std::string hash;    // 64 hexadecimal digits (SHA-256) or 40 (Git's)
  // For what a refusal says.
  std::string endpoint;
  bool has_token = false;
};

// Whether the cache has the blob, by its name and size.
bool HasBlob(const HubCache& cache, const BlobRequest& request);

// Makes sure that the cache has the blob: waits for another process that is getting it, goes on
// from what an earlier one left, tries again where the network fails. The blob has its name only
// when its size and its hash are right. Returns how many bytes were transferred.
//
// `at` is called with the number of bytes that are there. Errors leave what was transferred as the
// blob's .incomplete file, except DataLoss, for bytes that are wrong, which leaves nothing.
absl::StatusOr<uint64_t> FetchBlob(HttpGetter& getter, const HubCache& cache,
                                   const BlobRequest& request, const RetryPolicy& policy,
                                   const PullObserver& observer,
                                   const std::function<void(uint64_t)>& at);

}  // namespace inlay

#endif  // INLAY_IO_DOWNLOAD_FETCH_BLOB_H_
