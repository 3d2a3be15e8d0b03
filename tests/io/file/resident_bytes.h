// How much of a mapped file is memory of this process.
#ifndef INLAY_TESTS_IO_RESIDENT_BYTES_H_
#define INLAY_TESTS_IO_RESIDENT_BYTES_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace inlay {

// Resident bytes of the mapping that begins at this address, as the system counts them.
inline size_t ResidentBytes(const uint8_t* mapping) {
  std::ifstream maps("/proc/self/smaps");
  const std::string begin = absl::StrCat(absl::Hex(reinterpret_cast<uintptr_t>(mapping)), "-");
  bool found = false;
  for (std::string line; std::getline(maps, line);) {
    found = found || absl::StartsWith(line, begin);
    size_t kilobytes = 0;
    if (found && std::sscanf(line.c_str(), "Rss: %zu kB", &kilobytes) == 1) return kilobytes << 10;
  }
  ADD_FAILURE() << "no mapping begins at " << begin;
  return 0;
}

}  // namespace inlay

#endif  // INLAY_TESTS_IO_RESIDENT_BYTES_H_
