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
  thread_local const std::unique_ptr<std::byte[], Free> memory(new (kAlignment)
                                                                   std::byte[kKernelMemory]);
  return memory.get();
}

size_t PlannedKernelMemory(size_t threads) {
  if (ChosenExtension() == Extension::kAmx) return threads * kAmxMemory;
  return UnpacksWeights() ? threads * kUnpackedMemory : 0;
}

}  // namespace inlay
