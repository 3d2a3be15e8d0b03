#include "serve/service/process_figures.h"

#include <time.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"

namespace inlay::serve {

std::optional<uint64_t> ResidentMemory() {
  std::ifstream status("/proc/self/status");  // one of the files that --sandbox lets be read
  for (std::string word; status >> word;) {
    uint64_t kilobytes = 0;
    if (word == "VmRSS:" && status >> kilobytes) return kilobytes * 1024;
  }
  return std::nullopt;
}

std::optional<absl::Time> ProcessStart() {
  // proc(5): the 22nd field, the 20th after the name in parentheses, which may hold spaces and
  // parentheses itself. It counts ticks since the system's start.
  constexpr size_t kStartTime = 19;
  std::ifstream file("/proc/self/stat");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(text).substr(name_end + 1), ' ', absl::SkipWhitespace());
  int64_t ticks = 0;
  timespec since_boot = {};
  const int64_t ticks_per_second = sysconf(_SC_CLK_TCK);
  if (fields.size() <= kStartTime || !absl::SimpleAtoi(fields[kStartTime], &ticks) ||
      ticks_per_second <= 0 || clock_gettime(CLOCK_BOOTTIME, &since_boot) != 0)
    return std::nullopt;
  const absl::Duration age =
      absl::DurationFromTimespec(since_boot) - absl::Seconds(1) * ticks / ticks_per_second;
  return absl::Now() - age;
}

}  // namespace inlay::serve
