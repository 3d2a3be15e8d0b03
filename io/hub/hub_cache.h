// Hugging Face's cache of files on this machine, which other programs read and write too.
//
// FOLDER/
//   models--USER--REPO/
//     blobs/HASH               a file, whole; HASH.incomplete: what there is of it so far
//     refs/main                the commit that "main" was when it was last asked about
//     snapshots/COMMIT/PATH    a link to ../../blobs/HASH
//   .locks/models--USER--REPO/HASH.lock
//
// The layout is that of https://huggingface.co/docs/hub/local-cache.
#ifndef INLAY_IO_HUB_HUB_CACHE_H_
#define INLAY_IO_HUB_HUB_CACHE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/hub/hub_name.h"
#include "io/hub/local_model.h"

namespace inlay {

class HubCache {
 public:
  explicit HubCache(std::string folder) : folder_(std::move(folder)) {}

  // Where a blob is, or will be. `hash` is 40 or 64 hexadecimal digits.
  std::string BlobPath(const HubName& name, absl::string_view hash) const;
  // What FileLock::Acquire takes to keep other programs from writing the blob.
  std::string LockPath(const HubName& name, absl::string_view hash) const;
  // Where a file of a snapshot is, or will be.
  std::string SnapshotPath(const HubName& name, absl::string_view commit,
                           absl::string_view path) const;

  // Makes the folders that BlobPath and LockPath lead into.
  absl::Status MakeFolders(const HubName& name) const;

  // Makes the file of the snapshot a link to the blob, which is whole. Nothing but folders that are
  // there, or that it makes, are on the way: FailedPrecondition names what is in the way.
  // InvalidArgument where CheckHubPath refuses the path.
  absl::Status Link(const HubName& name, absl::string_view commit, absl::string_view path,
                    absl::string_view hash) const;

  // Says that "main" is this commit. A link in the place of refs/main is replaced, not followed.
  absl::Status WriteRef(const HubName& name, absl::string_view commit) const;

  // The paths of the model's files, in the order of its parts: what ChooseFiles chooses in the
  // snapshot that "main" is, or else in the newest that has it. NotFound where none has it.
  absl::StatusOr<std::vector<std::string>> Find(const HubName& name) const;

  // Every model in the cache, by name.
  std::vector<LocalModel> List() const;

 private:
  std::string RepoFolder(const HubName& name) const;
  // The commits that have a snapshot: that of "main", then the others, the newest first.
  std::vector<std::string> Commits(const std::string& repo_folder) const;

  std::string folder_;
};

}  // namespace inlay

#endif  // INLAY_IO_HUB_HUB_CACHE_H_
