#include "io/hub/files_below.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace inlay {
namespace {

class FolderWalk {
 public:
  std::vector<std::string> files;
  std::vector<std::string> folders;  // of depth 1

  void Visit(const std::string& folder, const std::string& prefix, size_t depth) {
    const std::vector<std::string> below = VisitAlone(folder, prefix);
    if (prefix.empty()) folders = below;
    if (depth <= 1) return;
    for (const std::string& name : below)
      Visit(absl::StrCat(folder, "/", name), absl::StrCat(prefix, name, "/"), depth - 1);
  }

 private:
  // Adds the files in `folder`, and returns the names of its folders. By readdir, as libstdc++'s
  // directory_iterator ends the process where memory runs out.
  std::vector<std::string> VisitAlone(const std::string& folder, const std::string& prefix) {
    std::vector<std::string> below;
    const std::unique_ptr<DIR, int (*)(DIR*)> opened(opendir(folder.c_str()), closedir);
    if (opened == nullptr) return below;
    while (left_ > 0) {
      const dirent* const entry = readdir(opened.get());
      if (entry == nullptr) break;
      const absl::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      --left_;
      struct stat info;
      if (fstatat(dirfd(opened.get()), entry->d_name, &info, 0) != 0) continue;
      if (S_ISDIR(info.st_mode)) {
        below.emplace_back(name);
      } else if (S_ISREG(info.st_mode)) {
        files.push_back(absl::StrCat(prefix, name));
      }
    }
    return below;
  }

  size_t left_ = kMostNamesBelow;
};

}  // namespace

std::vector<std::string> FilesBelow(const std::string& folder, size_t depth) {
  FolderWalk walk;
  walk.Visit(folder, "", depth);
  std::sort(walk.files.begin(), walk.files.end());
  return walk.files;
}

std::vector<std::string> FoldersIn(const std::string& folder) {
  FolderWalk walk;
  walk.Visit(folder, "", 1);
  std::sort(walk.folders.begin(), walk.folders.end());
  return walk.folders;
}

}  // namespace inlay
