// Memory that runs out at the Nth allocation: this program's own operator new and aligned_alloc
// count, in all threads or in one, and fail. For one source of a program.
#ifndef INLAY_TESTS_FAILING_MEMORY_H_
#define INLAY_TESTS_FAILING_MEMORY_H_

#include <malloc.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <new>

namespace failing_memory {

enum class Fault {
  kOnce,  // there is memory again after one failure
  kFromThenOn,
};

enum class Threads {
  kAll,
  kThisOne,  // where what others allocate meanwhile, and when, is not under test
};

inline std::atomic<long> left = -1;  // allocations until one fails; below 0: none will
inline std::atomic<bool> has_failed = false;
inline std::atomic<Fault> fault = Fault::kOnce;
inline std::atomic<bool> in_all_threads = true;
inline thread_local bool in_this_one = false;
inline std::atomic<size_t> held = 0;  // bytes; of aligned_alloc's all that it ever gave

inline void FailAfter(long allocations, Fault how, Threads threads = Threads::kAll) {
  has_failed = false;
  fault = how;
  in_this_one = true;
  in_all_threads = threads == Threads::kAll;
  left = allocations;
}

inline void Stop() {
  fault = Fault::kOnce;
  left = -1;
  in_this_one = false;
}

inline bool Fails() {
  if (left.load() < 0 || !(in_all_threads || in_this_one)) return false;
  long before = left.load();
  while (before >= 0) {
    const long after = before == 0 && fault.load() == Fault::kFromThenOn ? 0 : before - 1;
    if (!left.compare_exchange_weak(before, after)) continue;
    if (before > 0) return false;
    has_failed = true;
    return true;
  }
  return false;
}

inline void* Allocate(size_t bytes, size_t alignment) {
  void* memory = nullptr;
  if (Fails() || posix_memalign(&memory, std::max(alignment, sizeof(void*)), bytes) != 0)
    return nullptr;
  return memory;
}

inline void* New(size_t bytes, size_t alignment) {
  void* const memory = Allocate(bytes, alignment);
  held += malloc_usable_size(memory);
  return memory;
}

inline void* NewOrThrow(size_t bytes, size_t alignment) {
  void* const memory = New(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

inline void Delete(void* memory) {
  held -= malloc_usable_size(memory);
  free(memory);
}

inline constexpr size_t kUsual = alignof(std::max_align_t);

}  // namespace failing_memory

extern "C" void* aligned_alloc(size_t alignment, size_t bytes) __THROW {
  void* const memory = failing_memory::Allocate(bytes, alignment);
  if (memory != nullptr) failing_memory::held += bytes;
  return memory;
}
void* operator new(size_t bytes) {
  return failing_memory::NewOrThrow(bytes, failing_memory::kUsual);
}
void* operator new[](size_t bytes) {
  return failing_memory::NewOrThrow(bytes, failing_memory::kUsual);
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  return failing_memory::NewOrThrow(bytes, static_cast<size_t>(alignment));
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return failing_memory::NewOrThrow(bytes, static_cast<size_t>(alignment));
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return failing_memory::New(bytes, failing_memory::kUsual);
}
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept {
  return failing_memory::New(bytes, failing_memory::kUsual);
}
void operator delete(void* memory) noexcept { failing_memory::Delete(memory); }
void operator delete[](void* memory) noexcept { failing_memory::Delete(memory); }
void operator delete(void* memory, size_t) noexcept { failing_memory::Delete(memory); }
void operator delete[](void* memory, size_t) noexcept { failing_memory::Delete(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { failing_memory::Delete(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { failing_memory::Delete(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  failing_memory::Delete(memory);
}
void operator delete[](void* memory, size_t, std::align_val_t) noexcept {
  failing_memory::Delete(memory);
}

#endif  // INLAY_TESTS_FAILING_MEMORY_H_
