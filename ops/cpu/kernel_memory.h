// What the kernels of a thread write and read again beside their results: too much for the stacks
// that some programs give their threads.
#ifndef INLAY_OPS_CPU_KERNEL_MEMORY_H_
#define INLAY_OPS_CPU_KERNEL_MEMORY_H_

#include <cstddef>

namespace inlay {

// Bytes for the kernels of AMX. With less their products copy activations more often.
inline constexpr size_t kAmxMemory = 640 << 10;
// Bytes for kernels that unpack weights.
inline constexpr size_t kUnpackedMemory = 160 << 10;

// The calling thread's memory, aligned to 64: kUnpackedMemory bytes where kernels of the CPU target
// in use unpack weights, else kAmxMemory. Allocated by the thread's first call and freed when it
// ends. One kernel at a time uses it, and overwrites what an earlier one left. Throws
// std::bad_alloc if there is no memory.
std::byte* KernelMemory();

// Bytes of it that the kernels of `threads` threads use on the CPU target in use.
size_t PlannedKernelMemory(size_t threads);

}  // namespace inlay

#endif  // INLAY_OPS_CPU_KERNEL_MEMORY_H_
