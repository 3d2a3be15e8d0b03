#include "gemma_like/model/memory_plan.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>

#include "absl/strings/str_cat.h"
#include "gemma_like/model/cgroup_limits.h"

namespace inlay {
namespace {

constexpr size_t kUnknown = std::numeric_limits<size_t>::max();

// The number behind `label` in a file of the system such as /proc/meminfo, in kB there.
size_t KilobytesOf(const char* path, const char* label) {
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) return kUnknown;
  size_t bytes = kUnknown;
  char line[256];
  while (std::fgets(line, sizeof(line), file) != nullptr) {
    unsigned long long kilobytes = 0;
    char name[64];
    if (std::sscanf(line, "%63[^:]: %llu kB", name, &kilobytes) == 2 &&
        absl::string_view(name) == label) {
      bytes = static_cast<size_t>(kilobytes) * 1024;
      break;
    }
  }
  std::fclose(file);
  return bytes;
}

}  // namespace

size_t AvailableMemory(const std::string& root) {
  size_t available = std::min(KilobytesOf("/proc/meminfo", "MemAvailable"), CgroupMemory(root));
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    const size_t used = KilobytesOf("/proc/self/status", "VmSize");
    const size_t most = static_cast<size_t>(limit.rlim_cur);
    available = std::min(available, used == kUnknown ? most : most - std::min(most, used));
  }
  return available;
}

absl::Status CheckMemory(absl::string_view what, size_t needed) {
  const size_t available = AvailableMemory();
  if (needed <= available) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(what, " needs ", needed, " bytes of memory, but ", available, " are available"));
}

}  // namespace inlay
