#include "tools/process_memory.h"

#include <fstream>
#include <string>

namespace inlay {

std::optional<uint64_t> PeakMemory() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    uint64_t kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes * 1024;
  }
  return std::nullopt;
}

bool ResetPeakMemory() {
  std::ofstream clear("/proc/self/clear_refs");
  return static_cast<bool>(clear << "5" << std::flush);  // proc(5)
}

}  // namespace inlay
