// What the control groups of this process let it use: containers, services and batch systems limit
// memory and processors with them.
#ifndef INLAY_GEMMA_LIKE_MODEL_CGROUP_LIMITS_H_
#define INLAY_GEMMA_LIKE_MODEL_CGROUP_LIMITS_H_

#include <cstddef>
#include <string>

namespace inlay {

// Groups of both versions count, and all groups that these are in. The results are the largest
// size_t where no group has a limit, or their files cannot be read. `root` is the folder with
// proc/self/cgroup and sys/fs/cgroup, and ends with a slash.

// The least memory, in bytes, that one of the groups leaves the process: a group's limit
// (memory.max and memory.high, or memory.limit_in_bytes) minus what its processes use, without the
// file cache, which the kernel takes back.
size_t CgroupMemory(const std::string& root = "/");

// The least number of cores whose time one of the groups gives the process, at least 1: a group's
// quota (cpu.max, or cpu.cfs_quota_us and cpu.cfs_period_us), rounded up.
size_t CgroupCores(const std::string& root = "/");

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_MODEL_CGROUP_LIMITS_H_
