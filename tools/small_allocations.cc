// The program's operator new: small allocations find memory of their own where there is none.
//
// Destructors of nlohmann::json take little memory, also where no exception is on its way, and
// cannot fail without ending the process. With this the large allocations of a request fail first,
// which ends the request and gives all that it has back. What is kept for small ones is apart from
// the system's allocator, where it would go to whoever asks first, be it for much.
//
// Each program that links the tools' archive gets these operators, but for tests with their own.
// The libraries that Inlay installs have none: they are the business of the program that uses them.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <new>

#include "base/unwinding_memory.h"

namespace {

constexpr std::size_t kSizes[] = {64, 256, 1024, 4096};
constexpr std::size_t kBytes = inlay::kSmallMemoryBytes / std::size(kSizes);  // of each size

// The blocks of one size, in their part of the memory that is kept, which costs nothing until it is
// used.
class Blocks {
 public:
  // Null where all are taken, or nothing was kept. `size` is the index of theirs.
  void* Take(std::size_t size) noexcept {
    unsigned char* const memory = inlay::SmallMemory();
    if (memory == nullptr) return nullptr;
    Lock();
    void* block = free_;
    if (block != nullptr) {
      free_ = free_->next;
    } else if (used_ < kBytes) {
      block = memory + size * kBytes + used_;
      used_ += kSizes[size];
    }
    Unlock();
    return block;
  }

  void GiveBack(void* block) noexcept {
    Lock();
    free_ = new (block) Free{free_};
    Unlock();
  }

 private:
  struct Free {
    Free* next;
  };

  void Lock() noexcept {
    while (locked_.test_and_set(std::memory_order_acquire)) {
    }
  }
  void Unlock() noexcept { locked_.clear(std::memory_order_release); }

  std::size_t used_ = 0;
  Free* free_ = nullptr;
  std::atomic_flag locked_;
};

constinit Blocks blocks[std::size(kSizes)];

void* TakeKept(std::size_t bytes) noexcept {
  for (std::size_t size = 0; size < std::size(kSizes); ++size) {
    if (bytes <= kSizes[size]) return blocks[size].Take(size);
  }
  return nullptr;
}

void Free(void* memory) noexcept {
  const unsigned char* const kept = inlay::SmallMemory();
  const std::uintptr_t at =
      reinterpret_cast<std::uintptr_t>(memory) - reinterpret_cast<std::uintptr_t>(kept);
  if (kept == nullptr || at >= inlay::kSmallMemoryBytes) return std::free(memory);
  blocks[at / kBytes].GiveBack(memory);
}

}  // namespace

// Those for arrays, and those that do not throw, call it.
void* operator new(std::size_t bytes) {
  while (true) {
    if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
    if (void* const memory = TakeKept(bytes)) return memory;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

void operator delete(void* memory) noexcept { Free(memory); }
void operator delete(void* memory, std::size_t) noexcept { Free(memory); }
