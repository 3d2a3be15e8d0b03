#include "io/hub/files_below.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace inlay {
namespace {

namespace fs = std::filesystem;

class FolderWalk {
 public:
  std::vector<std::string> files;
  std::vector<std::string> folders;  // of depth 1

  void Visit(const std::string& folder, const std::string& prefix, size_t depth) {
    std::error_code error;
    fs::directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error);
    std::vector<std::string> below;
    for (; !error && entry != fs::directory_iterator() && left_ > 0; entry.increment(error)) {
      --left_;
      const std::string name = entry->path().filename().string();
      std::error_code ignored;
      if (entry->is_directory(ignored)) {
        below.push_back(name);
      } else if (entry->is_regular_file(ignored)) {
        files.push_back(absl::StrCat(prefix, name));
      }
    }
    if (prefix.empty()) folders = below;
    if (depth <= 1) return;
    for (const std::string& name : below)
      Visit(absl::StrCat(folder, "/", name), absl::StrCat(prefix, name, "/"), depth - 1);
  }

 private:
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
