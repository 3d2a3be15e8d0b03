// What the AMX kernels of a thread write and read again beside their results: too much for the
// stacks that some programs give their threads.
#ifndef INLAY_OPS_CPU_AMX_MEMORY_H_
#define INLAY_OPS_CPU_AMX_MEMORY_H_

#include <cstddef>

namespace inlay {

// With less of it products copy activations more often.
inline constexpr size_t kAmxMemory = 640 << 10;

// The calling thread's kAmxMemory bytes, aligned to 64, allocated by its first call and freed when
// it ends. One kernel at a time uses them; what an earlier one left there is lost. Throws
// std::bad_alloc if there is no memory.
std::byte* AmxMemory();

// Bytes that `threads` threads need of it on the CPU target in use.
size_t PlannedAmxMemory(size_t threads);

}  // namespace inlay

#endif  // INLAY_OPS_CPU_AMX_MEMORY_H_
