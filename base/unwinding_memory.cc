#include "base/unwinding_memory.h"

#include <sys/mman.h>
#include <time.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <exception>
#include <new>

namespace inlay {
namespace {

// Several parts, since threads that do not unwind may be first to take what is given back. The
// allocator takes 1 MiB at least from the system where its usual ways are closed.
constexpr size_t kParts = 8;
constexpr size_t kPartBytes = size_t{2} << 20;

constexpr timespec kPause = {.tv_sec = 0, .tv_nsec = 1'000'000};
constexpr int kMostPauses = 5'000;

std::atomic<bool> is_kept = false;                      // KeepUnwindingMemory was called
std::array<std::atomic<void*>, kParts> addresses = {};  // null: given back
std::atomic<unsigned char*> small_memory = nullptr;
thread_local int pauses = 0;  // of this thread since it began to unwind

void Take(std::atomic<void*>& part) noexcept {
  void* const taken =
      mmap(nullptr, kPartBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (taken == MAP_FAILED) return;
  void* none = nullptr;
  if (!part.compare_exchange_strong(none, taken)) munmap(taken, kPartBytes);
}

// After a return operator new tries again.
void OnNoMemory() {
  if (std::uncaught_exceptions() == 0) {
    pauses = 0;
    throw std::bad_alloc();
  }
  for (std::atomic<void*>& part : addresses) {
    void* const kept = part.exchange(nullptr);
    if (kept == nullptr) continue;
    munmap(kept, kPartBytes);
    return;
  }
  if (pauses == kMostPauses) throw std::bad_alloc();
  ++pauses;
  nanosleep(&kPause, nullptr);
}

}  // namespace

void KeepUnwindingMemory() {
  is_kept = true;
  void* const small = mmap(nullptr, kSmallMemoryBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (small != MAP_FAILED) small_memory = static_cast<unsigned char*>(small);
  RenewUnwindingMemory();
  std::set_new_handler(OnNoMemory);
}

unsigned char* SmallMemory() noexcept { return small_memory; }

void RenewUnwindingMemory() noexcept {
  if (!is_kept) return;
  for (std::atomic<void*>& part : addresses) {
    if (part == nullptr) Take(part);
  }
}

}  // namespace inlay
