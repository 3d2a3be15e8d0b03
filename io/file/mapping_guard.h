// Survives files that become shorter while they are mapped: missing bytes read as zeros, where the
// read would otherwise end the process with SIGBUS.
#ifndef INLAY_IO_FILE_MAPPING_GUARD_H_
#define INLAY_IO_FILE_MAPPING_GUARD_H_

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace inlay {

// Installs a handler of SIGBUS for the whole process: a read of a MappedFile where its file has no
// bytes any more gives zeros, and MappedFile::CheckWhole fails from then on. Faults elsewhere go to
// the previous handler. A library should not install signal handlers by itself, so the program
// calls this once, before it maps files; without it such a read ends the process.
void GuardMappedFiles();

// A mapped range that the handler covers. Never freed, only reused, since the handler may read it
// at any time.
struct GuardedRange {
  // Odd while `begin` and `end` change, which they do not while a thread reads the range.
  std::atomic<uint64_t> version = 0;
  std::atomic<uintptr_t> begin = 0;
  std::atomic<uintptr_t> end = 0;  // 0: free
  std::atomic<bool> cut = false;   // missing bytes have been replaced by zeros
  std::atomic<int> error = 0;      // the errno of a failed read, where that is why
  dev_t device = 0;                // of the file, like inode; the handler does not read them
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
