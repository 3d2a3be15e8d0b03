// What a hub says that a repository holds.
#ifndef INLAY_IO_HUB_REPO_LISTING_H_
#define INLAY_IO_HUB_REPO_LISTING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace inlay {

struct HubFile {
  std::string path;  // passes CheckHubPath
  // Either may be unknown: a file's own reply then has them (its headers).
  std::optional<uint64_t> size;  // bytes
  // The SHA-256 in hexadecimal digits (64), or the SHA-1 of Git's blob (40); the name of the
  // cache's blob. Empty: unknown.
  std::string hash;
};

struct RepoListing {
  std::string commit;          // 40 hexadecimal digits
  std::vector<HubFile> files;  // those whose names end in .gguf
};

// The most that is read of a listing, in bytes and in files.
inline constexpr size_t kMostListingBytes = size_t{32} << 20;
inline constexpr size_t kMostListedFiles = 100'000;

// Reads the hub's reply to GET /api/models/USER/REPO/revision/main?blobs=true: {"sha": COMMIT,
// "siblings": [{"rfilename": PATH, "size": BYTES, "blobId": HASH, "lfs": {"sha256": HASH, "size":
// BYTES}}]}. InvalidArgument, with `who` as its subject, for anything else, for the name of a model
// file that CheckHubPath refuses and for more files than kMostListedFiles.
absl::StatusOr<RepoListing> ParseRepoListing(absl::string_view who, absl::string_view json);

}  // namespace inlay

#endif  // INLAY_IO_HUB_REPO_LISTING_H_
