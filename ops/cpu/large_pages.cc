#include "ops/cpu/large_pages.h"

#include <sys/mman.h>

#include <cstdlib>

namespace inlay {

void* AllocateLargePages(size_t bytes) {
  void* memory = std::aligned_alloc(kLargePage, LargePageBytes(bytes));
#ifdef MADV_HUGEPAGE
  if (memory != nullptr) (void)madvise(memory, LargePageBytes(bytes), MADV_HUGEPAGE);
#endif
  return memory;
}

void KeepSmallPages([[maybe_unused]] void* memory, [[maybe_unused]] size_t bytes) {
#ifdef MADV_NOHUGEPAGE
  (void)madvise(memory, LargePageBytes(bytes), MADV_NOHUGEPAGE);
#endif
}

}  // namespace inlay
