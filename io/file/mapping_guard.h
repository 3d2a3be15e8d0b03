// Survives files that become shorter while they are mapped: what is missing reads as zeros, where
// the read would otherwise end the process with SIGBUS.
#ifndef INLAY_IO_FILE_MAPPING_GUARD_H_
#define INLAY_IO_FILE_MAPPING_GUARD_H_

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace inlay {

// Installs a handler of SIGBUS for the whole process: a read of a MappedFile where its file has no
// bytes any more gives zeros, and MappedFile::whole() is false from then on. Faults elsewhere go to
// whatever handler was there before. A library takes no signal over unasked, so a program asks for
// this, once, before it maps files; without it such a read ends the process.
void GuardMappedFiles();

// A range of memory that the handler looks after. Never freed but used again, since the handler may
// be looking at it at any time.
struct GuardedRange {
  std::atomic<uintptr_t> begin = 0;
  std::atomic<uintptr_t> end = 0;  // 0: free
  std::atomic<bool> cut = false;   // zeros have taken the place of bytes
  dev_t device = 0;                // of the file, with its inode: not for the handler
  ino_t inode = 0;
  GuardedRange* next = nullptr;
};

// Thread-safe; for MappedFile.
GuardedRange* AddGuardedRange(const void* data, size_t size, dev_t device, ino_t inode);
void RemoveGuardedRange(GuardedRange* range);

// Whether a MappedFile of this process has the file open. Thread-safe.
bool IsMapped(dev_t device, ino_t inode);

}  // namespace inlay

#endif  // INLAY_IO_FILE_MAPPING_GUARD_H_
