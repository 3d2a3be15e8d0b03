// Memory that is kept for when there is none.
#ifndef INLAY_BASE_UNWINDING_MEMORY_H_
#define INLAY_BASE_UNWINDING_MEMORY_H_

#include <cstddef>

namespace inlay {

// From now on the process keeps 16 MiB of addresses aside, for destructors that take little memory
// (see base/out_of_memory.h) while an exception is on its way: any failure there ends the process.
// Where operator new finds no memory it throws std::bad_alloc, but in a thread that unwinds it
// gives a part of them back to the system and tries again, and once all are given back it waits for
// a few seconds for what other threads give back. It also keeps kSmallMemoryBytes for small
// allocations, if there are as many. Call it once, in main() or soon after.
void KeepUnwindingMemory();

// Memory that nothing but tools/small_allocations.cc takes: its first byte, of a page; null where
// none was kept.
inline constexpr std::size_t kSmallMemoryBytes = std::size_t{16} << 20;
unsigned char* SmallMemory() noexcept;

// Takes again what was given back, if there is memory: whoever has caught std::bad_alloc calls
// this.
void RenewUnwindingMemory() noexcept;

}  // namespace inlay

#endif  // INLAY_BASE_UNWINDING_MEMORY_H_
