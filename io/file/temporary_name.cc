#include "io/file/temporary_name.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cassert>
#include <mutex>
#include <utility>

namespace inlay {

struct TemporaryName::Slot {
  enum State : int { kFree, kUsed, kRemoving };

  std::atomic<int> state = kFree;
  std::string path;  // changes only while the slot is free
  Slot* next = nullptr;
};

namespace {

using Slot = TemporaryName::Slot;

std::atomic<Slot*> slots = nullptr;
std::mutex slots_mutex;  // held to allocate slots; the handler does not lock it

static_assert(std::atomic<int>::is_always_lock_free && std::atomic<Slot*>::is_always_lock_free,
              "the signal handler must not wait for a lock");

void RemoveAllOnSignal(int signal) {
  for (Slot* slot = slots.load(); slot != nullptr; slot = slot->next) {
    int used = Slot::kUsed;
    if (slot->state.compare_exchange_strong(used, Slot::kRemoving)) unlink(slot->path.c_str());
  }
  // SA_RESETHAND has restored the default action, which ends the process here.
  sigset_t own;
  sigemptyset(&own);
  sigaddset(&own, signal);
  pthread_sigmask(SIG_UNBLOCK, &own, nullptr);
  raise(signal);
  // The kernel takes no default action for PID 1 of a container.
  _exit(128 + signal);
}

void Free(Slot* slot) {
  int used = Slot::kUsed;
  if (slot->state.compare_exchange_strong(used, Slot::kFree)) return;
  // The handler, in another thread, is reading the path and then ends the process.
  while (true) pause();
}

}  // namespace

void RemoveTemporariesOnSignals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before;
    if (sigaction(signal, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) continue;
    struct sigaction action = {};
    action.sa_handler = RemoveAllOnSignal;
    action.sa_flags = SA_RESETHAND;
    for (const int other : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&action.sa_mask, other);
    sigaction(signal, &action, nullptr);
  }
}

TemporaryName::TemporaryName(const std::string& path) {
  std::lock_guard<std::mutex> lock(slots_mutex);
  Slot* slot = slots.load();
  while (slot != nullptr && slot->state.load() != Slot::kFree) slot = slot->next;
  if (slot == nullptr) {
    slot = new Slot;
    slot->next = slots.load();
    slots.store(slot);
  }
  slot->path = path;
  slot->state.store(Slot::kUsed);
  slot_ = slot;
}

TemporaryName::TemporaryName(TemporaryName&& other) noexcept
    : slot_(std::exchange(other.slot_, nullptr)) {}

TemporaryName& TemporaryName::operator=(TemporaryName&& other) noexcept {
  // The old name ends up in `other`, whose destructor removes its file.
  std::swap(slot_, other.slot_);
  return *this;
}

TemporaryName::~TemporaryName() {
  if (slot_ == nullptr) return;
  unlink(slot_->path.c_str());
  Free(slot_);
}

const std::string& TemporaryName::path() const {
  assert(slot_ != nullptr);
  return slot_->path;
}

void TemporaryName::Forget() {
  if (slot_ != nullptr) Free(std::exchange(slot_, nullptr));
}

}  // namespace inlay
