#include "io/hub/hub_cache.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <set>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/byte_stream.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "io/file/atomic_file.h"
#include "io/hub/choose_file.h"
#include "io/hub/files_below.h"
#include "io/hub/small_file.h"

namespace inlay {
namespace {

constexpr size_t kSnapshotDepth = 16;  // folders in each other; CheckHubPath allows as many
constexpr size_t kLongestRef = 64;     // bytes

// Makes a folder and those that it is in; links among them are followed.
absl::Status MakeFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error) return absl::OkStatus();
  return absl::ErrnoToStatus(error.value(), absl::StrCat("the folder ", path, " cannot be made"));
}

// Makes the folders of `relative`, one in the other, in `folder`. What is there already must be a
// folder, and no link to one.
absl::Status MakeFoldersWithin(std::string folder, absl::string_view relative) {
  for (const absl::string_view name : absl::StrSplit(relative, '/', absl::SkipEmpty())) {
    absl::StrAppend(&folder, "/", name);
    if (mkdir(folder.c_str(), 0777) == 0) continue;
    const int error = errno;
    struct stat info;
    if (error == EEXIST && lstat(folder.c_str(), &info) == 0) {
      if (S_ISDIR(info.st_mode)) continue;
      return absl::FailedPreconditionError(
          absl::StrCat(PrintableName(folder), " is not a folder and is in the way of one"));
    }
    return absl::ErrnoToStatus(
        error, absl::StrCat("the folder ", PrintableName(folder), " cannot be made"));
  }
  return absl::OkStatus();
}

// Where a symbolic link leads; empty where there is none.
std::string ReadLink(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::read_symlink(path, ignored).string();
}

// Whether a snapshot has the file itself, as where a file system knows no links.
bool IsCopyOf(const std::string& path, const std::string& blob) {
  struct stat file, whole;
  return lstat(path.c_str(), &file) == 0 && S_ISREG(file.st_mode) &&
         stat(blob.c_str(), &whole) == 0 && file.st_size == whole.st_size;
}

}  // namespace

std::string HubCache::RepoFolder(const HubName& name) const {
  return absl::StrCat(folder_, "/models--", name.user, "--", name.repo);
}

std::string HubCache::BlobPath(const HubName& name, absl::string_view hash) const {
  return absl::StrCat(RepoFolder(name), "/blobs/", hash);
}

std::string HubCache::LockPath(const HubName& name, absl::string_view hash) const {
  return absl::StrCat(folder_, "/.locks/models--", name.user, "--", name.repo, "/", hash);
}

std::string HubCache::SnapshotPath(const HubName& name, absl::string_view commit,
                                   absl::string_view path) const {
  return absl::StrCat(RepoFolder(name), "/snapshots/", commit, "/", path);
}

absl::Status HubCache::MakeFolders(const HubName& name) const {
  INLAY_RETURN_IF_ERROR(MakeFolder(absl::StrCat(RepoFolder(name), "/blobs")));
  const std::string lock = LockPath(name, "");
  return MakeFolder(lock.substr(0, lock.size() - 1));
}

absl::Status HubCache::Link(const HubName& name, absl::string_view commit, absl::string_view path,
                            absl::string_view hash) const {
  INLAY_RETURN_IF_ERROR(CheckHubPath(path));
  const std::string link = SnapshotPath(name, commit, path);
  const size_t slash = path.rfind('/');
  const absl::string_view folders =
      slash == absl::string_view::npos ? absl::string_view() : path.substr(0, slash);
  std::string target = "../../";
  for (size_t i = 0; i < static_cast<size_t>(std::count(path.begin(), path.end(), '/')); ++i)
    absl::StrAppend(&target, "../");
  absl::StrAppend(&target, "blobs/", hash);
  if (ReadLink(link) == target || IsCopyOf(link, BlobPath(name, hash))) return absl::OkStatus();

  INLAY_RETURN_IF_ERROR(
      MakeFoldersWithin(RepoFolder(name), absl::StrCat("snapshots/", commit, "/", folders)));
  if (unlink(link.c_str()) != 0 && errno != ENOENT)
    return absl::ErrnoToStatus(errno, absl::StrCat(PrintableName(link), " cannot be replaced"));
  // Another process may have made the same link in between.
  if (symlink(target.c_str(), link.c_str()) != 0 && !(errno == EEXIST && ReadLink(link) == target))
    return absl::ErrnoToStatus(errno, absl::StrCat(PrintableName(link), " cannot be made a link"));
  return SyncFolderOf(link);
}

absl::Status HubCache::WriteRef(const HubName& name, absl::string_view commit) const {
  const std::string path = absl::StrCat(RepoFolder(name), "/refs/main");
  const auto before = ReadSmallFile(path, kLongestRef);
  if (before.ok() && absl::StripAsciiWhitespace(*before) == commit) return absl::OkStatus();
  INLAY_RETURN_IF_ERROR(MakeFoldersWithin(RepoFolder(name), "refs"));
  // AtomicFile would replace the file that a link leads to, which may be outside of the cache.
  std::error_code ignored;
  if (std::filesystem::is_symlink(path, ignored) && unlink(path.c_str()) != 0 && errno != ENOENT)
    return absl::ErrnoToStatus(errno, absl::StrCat(PrintableName(path), " cannot be replaced"));
  INLAY_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  INLAY_RETURN_IF_ERROR(file.Write(AsBytes(commit)));
  return file.Commit();
}

std::vector<std::string> HubCache::Commits(const std::string& repo_folder) const {
  const std::string folder = absl::StrCat(repo_folder, "/snapshots");
  std::vector<std::pair<int64_t, std::string>> by_age;
  for (const std::string& commit : FoldersIn(folder)) {
    struct stat info;
    if (stat(absl::StrCat(folder, "/", commit).c_str(), &info) != 0) continue;
    by_age.emplace_back(-static_cast<int64_t>(info.st_mtime), commit);
  }
  std::sort(by_age.begin(), by_age.end());
  std::vector<std::string> commits;
  for (auto& [age, commit] : by_age) commits.push_back(std::move(commit));
  const auto ref = ReadSmallFile(absl::StrCat(repo_folder, "/refs/main"), kLongestRef);
  if (ref.ok()) {
    const auto current =
        std::find(commits.begin(), commits.end(), std::string(absl::StripAsciiWhitespace(*ref)));
    if (current != commits.end()) std::rotate(commits.begin(), current, current + 1);
  }
  return commits;
}

absl::StatusOr<std::vector<std::string>> HubCache::Find(const HubName& name) const {
  const std::string repo_folder = RepoFolder(name);
  absl::Status why = absl::NotFoundError(
      absl::StrCat("the cache ", PrintableName(folder_), " has no ", name.Id()));
  bool is_first = true;
  for (const std::string& commit : Commits(repo_folder)) {
    const std::string snapshot = absl::StrCat(repo_folder, "/snapshots/", commit);
    const std::vector<std::string> files = FilesBelow(snapshot, kSnapshotDepth);
    const auto chosen = ChooseFiles(files, name.type, absl::StrCat("the cached ", name.Id()));
    if (!chosen.ok()) {
      if (std::exchange(is_first, false)) why = chosen.status();
      continue;
    }
    std::vector<std::string> paths;
    for (const size_t i : *chosen) paths.push_back(absl::StrCat(snapshot, "/", files[i]));
    return paths;
  }
  return why;
}

std::vector<LocalModel> HubCache::List() const {
  std::vector<LocalModel> models;
  for (const std::string& folder : FoldersIn(folder_)) {
    absl::string_view rest = folder;
    if (!absl::ConsumePrefix(&rest, "models--")) continue;
    const std::vector<absl::string_view> parts = absl::StrSplit(rest, "--");
    const std::string id = absl::StrJoin(parts, "/");
    const std::string repo_folder = absl::StrCat(folder_, "/", folder);
    std::set<std::string> seen;  // blobs: snapshots share them
    for (const std::string& commit : Commits(repo_folder)) {
      const std::string snapshot = absl::StrCat(repo_folder, "/snapshots/", commit);
      for (const std::string& file : FilesBelow(snapshot, kSnapshotDepth)) {
        const auto type = ListedType(file);
        if (!type.has_value()) continue;
        std::string path = absl::StrCat(snapshot, "/", file);
        std::error_code ignored;
        if (!seen.insert(std::filesystem::canonical(path, ignored).string()).second) continue;
        models.push_back({"hub", absl::StrCat(id, ":", *type), std::move(path), ""});
      }
    }
  }
  return models;
}

}  // namespace inlay
