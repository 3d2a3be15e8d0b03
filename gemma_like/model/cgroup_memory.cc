#include "gemma_like/model/cgroup_memory.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace inlay {
namespace {

constexpr size_t kNoMemoryLimit = std::numeric_limits<size_t>::max();

// How a version of control groups names its files.
struct CgroupFiles {
  std::string mount;                // below the root folder
  std::vector<const char*> limits;  // each has a number, or "max"
  const char* used;
  const char* cache_prefix;  // of the file cache's lines in memory.stat
};

// The number that a file has; kNoMemoryLimit where there is no file or no number.
size_t NumberIn(const std::string& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  return file >> number ? static_cast<size_t>(number) : kNoMemoryLimit;
}

// The file cache, of the groups below this one too.
size_t FileCacheIn(const std::string& path, absl::string_view prefix) {
  std::ifstream file(path);
  std::string name;
  uint64_t bytes = 0, sum = 0;
  while (file >> name >> bytes) {
    if (name == absl::StrCat(prefix, "inactive_file") ||
        name == absl::StrCat(prefix, "active_file")) {
      sum += bytes;
    }
  }
  return static_cast<size_t>(sum);
}

size_t LeftIn(const std::string& folder, const CgroupFiles& files) {
  size_t limit = kNoMemoryLimit;
  for (const char* name : files.limits)
    limit = std::min(limit, NumberIn(absl::StrCat(folder, "/", name)));
  if (limit == kNoMemoryLimit) return kNoMemoryLimit;
  const size_t used = NumberIn(absl::StrCat(folder, "/", files.used));
  if (used == kNoMemoryLimit) return limit;
  const size_t cache = FileCacheIn(absl::StrCat(folder, "/memory.stat"), files.cache_prefix);
  return limit - std::min(limit, used - std::min(used, cache));
}

// Of the group and of all that it is in. A container may see its own group as the mounted folder
// itself, although /proc names the group as the host does: what is missing limits nothing.
size_t LeftAlong(const std::string& root, absl::string_view group, const CgroupFiles& files) {
  if (absl::StrContains(group, "/..")) group = "";  // it is beyond what this process may see
  size_t left = kNoMemoryLimit;
  while (true) {
    left = std::min(left, LeftIn(absl::StrCat(root, files.mount, group), files));
    if (group.empty()) return left;
    const size_t slash = group.rfind('/');
    group = group.substr(0, slash == absl::string_view::npos ? 0 : slash);
  }
}

}  // namespace

size_t CgroupMemory(const std::string& root) {
  const CgroupFiles v1 = {.mount = "sys/fs/cgroup/memory",
                          .limits = {"memory.limit_in_bytes"},
                          .used = "memory.usage_in_bytes",
                          .cache_prefix = "total_"};
  const CgroupFiles v2 = {.mount = "sys/fs/cgroup",
                          .limits = {"memory.max", "memory.high"},
                          .used = "memory.current",
                          .cache_prefix = ""};
  size_t left = kNoMemoryLimit;
  std::ifstream groups(absl::StrCat(root, "proc/self/cgroup"));
  // "4:memory:/a/group" of version 1, "0::/a/group" of version 2.
  for (std::string line; std::getline(groups, line);) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() < 3) continue;
    const std::vector<absl::string_view> controllers = absl::StrSplit(parts[1], ',');
    if (absl::c_linear_search(controllers, "memory"))
      left = std::min(left, LeftAlong(root, parts[2], v1));
    if (parts[1].empty()) left = std::min(left, LeftAlong(root, parts[2], v2));
  }
  return left;
}

}  // namespace inlay
