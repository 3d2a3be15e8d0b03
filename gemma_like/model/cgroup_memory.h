// What the control groups of this process let it allocate: containers, services and batch systems
// limit memory with them.
#ifndef INLAY_GEMMA_LIKE_MODEL_CGROUP_MEMORY_H_
#define INLAY_GEMMA_LIKE_MODEL_CGROUP_MEMORY_H_

#include <cstddef>
#include <string>

namespace inlay {

// The least memory, in bytes, that one of the control groups which this process is in leaves it: a
// group's limit minus what its processes use, without the file cache, which the kernel takes back.
// Groups of both versions count, with memory.max and memory.high or memory.limit_in_bytes. The
// largest size_t where none has a limit, or their files cannot be read.
//
// `root` is the folder with proc/self/cgroup and sys/fs/cgroup, and ends with a slash.
size_t CgroupMemory(const std::string& root = "/");

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_MODEL_CGROUP_MEMORY_H_
