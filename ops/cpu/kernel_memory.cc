#include "ops/cpu/kernel_memory.h"

#include <cstddef>
#include <memory>
#include <new>

#include "ops/cpu/cpu_target.h"

namespace inlay {

std::byte* KernelMemory() {
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(std::byte* p) const { ::operator delete[](p, kAlignment); }
  };
  struct Memory {
    std::unique_ptr<std::byte[], Free> bytes;
    size_t size = 0;
  };
  thread_local Memory memory;
  const size_t needed = UnpacksWeights() ? kUnpackedMemory : kAmxMemory;
  if (memory.size < needed) {  // a test may have forced another target
    memory.size = 0;
    memory.bytes.reset();
    memory.bytes.reset(new (kAlignment) std::byte[needed]);
    memory.size = needed;
  }
  return memory.bytes.get();
}

size_t PlannedKernelMemory(size_t threads) {
  if (ChosenExtension() == Extension::kAmx) return threads * kAmxMemory;
  return UnpacksWeights() ? threads * kUnpackedMemory : 0;
}

}  // namespace inlay
