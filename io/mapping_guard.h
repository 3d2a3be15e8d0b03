// Survives files that become shorter while they are mapped: what is missing reads as zeros, where
// the read would otherwise end the process with SIGBUS.
#ifndef INLAY_IO_MAPPING_GUARD_H_
#define INLAY_IO_MAPPING_GUARD_H_

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
  GuardedRange* next = nullptr;
};

// Thread-safe; for MappedFile.
GuardedRange* AddGuardedRange(const void* data, size_t size);
void RemoveGuardedRange(GuardedRange* range);

}  // namespace inlay

#endif  // INLAY_IO_MAPPING_GUARD_H_
