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

}  // namespace inlay
