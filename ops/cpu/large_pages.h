// Memory in the system's large pages.
#ifndef INLAY_OPS_CPU_LARGE_PAGES_H_
#define INLAY_OPS_CPU_LARGE_PAGES_H_

#include <cstddef>

namespace inlay {

// The size of large pages on x86, and on Arm where small pages have 4 KiB. Elsewhere it is some
// multiple of a page, which does no harm.
inline constexpr size_t kLargePage = size_t{2} << 20;

// The multiple of kLargePage that holds `bytes`.
constexpr size_t LargePageBytes(size_t bytes) {
  return (bytes + kLargePage - 1) / kLargePage * kLargePage;
}

// LargePageBytes(bytes) bytes, aligned to kLargePage and freed by std::free, or nullptr without
// memory. The system is asked for large pages, which need fewer address translations and are
// cleared much faster than as many small ones; it may give small ones all the same.
void* AllocateLargePages(size_t bytes);

// Asks the system not to make large pages of small ones in this memory, which would also fill the
// places of pages that were returned to it. Large pages of which nothing was returned stay.
void KeepSmallPages(void* memory, size_t bytes);

}  // namespace inlay

#endif  // INLAY_OPS_CPU_LARGE_PAGES_H_
