#include "base/unwinding_memory.h"

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <new>

namespace inlay {
namespace {

// The allocator takes 1 MiB at least from the system where its usual ways are closed.
constexpr size_t kBytes = size_t{8} << 20;

std::atomic<bool> is_kept = false;       // KeepUnwindingMemory was called
std::atomic<void*> addresses = nullptr;  // null: given back

void Take() noexcept {
  void* const taken =
      mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (taken == MAP_FAILED) return;
  void* none = nullptr;
  if (!addresses.compare_exchange_strong(none, taken)) munmap(taken, kBytes);
}

void OnNoMemory() {
  if (void* const kept = addresses.exchange(nullptr); kept != nullptr) munmap(kept, kBytes);
  throw std::bad_alloc();
}

}  // namespace

void KeepUnwindingMemory() {
  is_kept = true;
  Take();
  std::set_new_handler(OnNoMemory);
}

void RenewUnwindingMemory() noexcept {
  if (is_kept && addresses == nullptr) Take();
}

}  // namespace inlay
