#include "io/file/mapping_guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>

namespace inlay {
namespace {

std::atomic<GuardedRange*> ranges = nullptr;
std::mutex mutex;  // held to add or remove ranges; the handler does not lock it

struct sigaction previous_action;
uintptr_t page_bytes = 0;

// Maps zeros over what the file no longer has. mmap is a plain system call, so a signal handler may
// use it.
bool MapZeros(uintptr_t address) {
  for (GuardedRange* range = ranges.load(); range != nullptr; range = range->next) {
    const uint64_t version = range->version.load();
    const uintptr_t begin = range->begin.load(), end = range->end.load();
    if (address < begin || address >= end) continue;
    // Ends that changed meanwhile may be of two mappings, and the address is in neither.
    if (version % 2 != 0 || range->version.load() != version) continue;
    // The file has no bytes after the first missing page either.
    const uintptr_t page = address / page_bytes * page_bytes;
    void* const zeros = mmap(reinterpret_cast<void*>(page), end - page, PROT_READ,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    if (zeros == MAP_FAILED) return false;
    range->cut.store(true);
    return true;
  }
  return false;
}

// Under the mutex.
void Set(GuardedRange& range, uintptr_t begin, uintptr_t end) {
  ++range.version;
  range.begin.store(begin);
  range.end.store(end);
  ++range.version;
}

void OnBusError(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const bool replaced = MapZeros(reinterpret_cast<uintptr_t>(info->si_addr));
  errno = saved_errno;
  if (replaced) return;
  if ((previous_action.sa_flags & SA_SIGINFO) != 0)
    return previous_action.sa_sigaction(signal, info, context);
  if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN)
    return previous_action.sa_handler(signal);
  // After the return the read faults again, and the default action ends the process.
  ::signal(SIGBUS, SIG_DFL);
}

}  // namespace

void GuardMappedFiles() {
  std::lock_guard<std::mutex> lock(mutex);
  if (page_bytes != 0) return;
  page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  struct sigaction action = {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, &previous_action);
}

GuardedRange* AddGuardedRange(const void* data, size_t size, dev_t device, ino_t inode) {
  std::lock_guard<std::mutex> lock(mutex);
  GuardedRange* range = ranges.load();
  while (range != nullptr && range->end.load() != 0) range = range->next;
  if (range == nullptr) {
    range = new GuardedRange;
    range->next = ranges.load();
    ranges.store(range);
  }
  range->cut.store(false);
  range->error.store(0);
  range->device = device;
  range->inode = inode;
  const auto begin = reinterpret_cast<uintptr_t>(data);
  Set(*range, begin, begin + size);
  return range;
}

void RemoveGuardedRange(GuardedRange* range) {
  std::lock_guard<std::mutex> lock(mutex);
  Set(*range, 0, 0);
}

bool IsMapped(dev_t device, ino_t inode) {
  std::lock_guard<std::mutex> lock(mutex);
  for (const GuardedRange* range = ranges.load(); range != nullptr; range = range->next) {
    if (range->end.load() != 0 && range->device == device && range->inode == inode) return true;
  }
  return false;
}

}  // namespace inlay
