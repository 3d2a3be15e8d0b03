#include "gemma_like/model/cgroup_limits.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace inlay {
namespace {

constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();

enum class Version { kFirst, kSecond };

// How a version of control groups names its files about memory.
struct MemoryFiles {
  std::vector<const char*> limits;  // each has a number, or "max"
  const char* used;
  const char* cache_prefix;  // of the file cache's lines in memory.stat
};

// The number that a file has; kNoLimit where there is no file or no number.
size_t NumberIn(const std::string& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  return file >> number ? static_cast<size_t>(number) : kNoLimit;
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

size_t LeftIn(const std::string& folder, const MemoryFiles& files) {
  size_t limit = kNoLimit;
  for (const char* name : files.limits)
    limit = std::min(limit, NumberIn(absl::StrCat(folder, "/", name)));
  if (limit == kNoLimit) return kNoLimit;
  const size_t used = NumberIn(absl::StrCat(folder, "/", files.used));
  if (used == kNoLimit) return limit;
  const size_t cache = FileCacheIn(absl::StrCat(folder, "/memory.stat"), files.cache_prefix);
  return limit - std::min(limit, used - std::min(used, cache));
}

size_t CoresIn(const std::string& folder, Version version) {
  int64_t quota = 0, period = 0;  // microseconds in a period; no number, or -1: no limit
  if (version == Version::kFirst) {
    std::ifstream(absl::StrCat(folder, "/cpu.cfs_quota_us")) >> quota;
    std::ifstream(absl::StrCat(folder, "/cpu.cfs_period_us")) >> period;
  } else {
    std::ifstream(absl::StrCat(folder, "/cpu.max")) >> quota >> period;
  }
  if (quota <= 0 || period <= 0) return kNoLimit;
  return static_cast<size_t>(quota / period + (quota % period != 0 ? 1 : 0));
}

// Calls `look` with the folder of the group, and of each group that it is in. A container may see
// its own group as the mounted folder itself, although /proc names the group as the host does: what
// is missing limits nothing.
void LookAlong(const std::string& mount, absl::string_view group,
               absl::FunctionRef<void(const std::string& folder)> look) {
  if (absl::StrContains(group, "/..")) group = "";  // it is beyond what this process may see
  while (true) {
    look(absl::StrCat(mount, group));
    if (group.empty()) return;
    const size_t slash = group.rfind('/');
    group = group.substr(0, slash == absl::string_view::npos ? 0 : slash);
  }
}

// The same for all groups of this process that may limit what the controller counts.
void LookAtGroups(const std::string& root, absl::string_view controller,
                  absl::FunctionRef<void(const std::string& folder, Version version)> look) {
  const std::string mount = absl::StrCat(root, "sys/fs/cgroup");
  std::ifstream groups(absl::StrCat(root, "proc/self/cgroup"));
  // "4:memory:/a/group" of version 1, "0::/a/group" of version 2.
  for (std::string line; std::getline(groups, line);) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() < 3) continue;
    const std::vector<absl::string_view> controllers = absl::StrSplit(parts[1], ',');
    if (absl::c_linear_search(controllers, controller)) {
      LookAlong(absl::StrCat(mount, "/", controller), parts[2],
                [&](const std::string& folder) { look(folder, Version::kFirst); });
    }
    if (parts[1].empty()) {
      LookAlong(mount, parts[2],
                [&](const std::string& folder) { look(folder, Version::kSecond); });
    }
  }
}

}  // namespace

size_t CgroupMemory(const std::string& root) {
  const MemoryFiles v1 = {.limits = {"memory.limit_in_bytes"},
                          .used = "memory.usage_in_bytes",
                          .cache_prefix = "total_"};
  const MemoryFiles v2 = {
      .limits = {"memory.max", "memory.high"}, .used = "memory.current", .cache_prefix = ""};
  size_t left = kNoLimit;
  LookAtGroups(root, "memory", [&](const std::string& folder, Version version) {
    left = std::min(left, LeftIn(folder, version == Version::kFirst ? v1 : v2));
  });
  return left;
}

size_t CgroupCores(const std::string& root) {
  size_t cores = kNoLimit;
  LookAtGroups(root, "cpu", [&](const std::string& folder, Version version) {
    cores = std::min(cores, CoresIn(folder, version));
  });
  return cores;
}

}  // namespace inlay
