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
#include <new>

namespace {

// Blocks of one size in memory that costs nothing until it is used.
template <std::size_t kBlockBytes>
class Blocks {
 public:
  // Null where all are taken.
  void* Take() noexcept {
    Lock();
    void* block = free_;
    if (block != nullptr) {
      free_ = free_->next;
    } else if (used_ < kBytes) {
      block = memory_ + used_;
      used_ += kBlockBytes;
    }
    Unlock();
    return block;
  }

  // False for what is none of these.
  bool GiveBack(void* block) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(block);
    if (at - reinterpret_cast<std::uintptr_t>(memory_) >= kBytes) return false;
    Lock();
    free_ = new (block) Free{free_};
    Unlock();
    return true;
  }

 private:
  static constexpr std::size_t kBytes = std::size_t{4} << 20;
  struct Free {
    Free* next;
  };

  void Lock() noexcept {
    while (locked_.test_and_set(std::memory_order_acquire)) {
    }
  }
  void Unlock() noexcept { locked_.clear(std::memory_order_release); }

  alignas(kBlockBytes) static inline unsigned char memory_[kBytes];
  std::size_t used_ = 0;
  Free* free_ = nullptr;
  std::atomic_flag locked_;
};

constinit Blocks<64> blocks_of_64;
constinit Blocks<256> blocks_of_256;
constinit Blocks<1024> blocks_of_1024;
constinit Blocks<4096> blocks_of_4096;

void* TakeKept(std::size_t bytes) noexcept {
  if (bytes <= 64) return blocks_of_64.Take();
  if (bytes <= 256) return blocks_of_256.Take();
  if (bytes <= 1024) return blocks_of_1024.Take();
  return bytes <= 4096 ? blocks_of_4096.Take() : nullptr;
}

void Free(void* memory) noexcept {
  if (blocks_of_64.GiveBack(memory) || blocks_of_256.GiveBack(memory) ||
      blocks_of_1024.GiveBack(memory) || blocks_of_4096.GiveBack(memory))
    return;
  std::free(memory);
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
