#include "ops/cpu/amx_memory.h"

#include <cstddef>
#include <memory>
#include <new>

#include "ops/cpu/cpu_target.h"

namespace inlay {

std::byte* AmxMemory() {
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(std::byte* p) const { ::operator delete[](p, kAlignment); }
  };
  thread_local const std::unique_ptr<std::byte[], Free> memory(new (kAlignment)
                                                                   std::byte[kAmxMemory]);
  return memory.get();
}

size_t PlannedAmxMemory(size_t threads) {
  return ChosenExtension() == Extension::kAmx ? threads * kAmxMemory : 0;
}

}  // namespace inlay
