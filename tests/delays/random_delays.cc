// A library to preload (scripts/test-delays): after a mutex is locked or unlocked, and after bytes
// are sent or received, a thread sometimes sleeps. Orders of events that are rare otherwise become
// common, so that tests find faults which would take luck to be seen.
//
// INLAY_DELAYS=N: one call of N sleeps, for up to 3 ms. INLAY_DELAYS_SEED: which ones do. Nothing
// in programs that are not this project's, as tests start Node, browsers and Redis, too.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

// The name of this program; glibc's, as /proc may be out of reach in a sandbox.
std::string_view ProgramName() { return program_invocation_short_name; }

bool IsOurs(std::string_view name) {
  return name == "inlay" || name == "inlay-mpi" || name.ends_with("_test");
}

struct Settings {
  uint32_t one_of = 0;  // calls, of which one sleeps; 0: none does
  uint32_t seed = 1;
};

Settings ReadSettings() {
  Settings settings;
  const char* one_of = std::getenv("INLAY_DELAYS");
  if (one_of == nullptr || !IsOurs(ProgramName())) return settings;
  settings.one_of = static_cast<uint32_t>(std::atoi(one_of));
  if (const char* seed = std::getenv("INLAY_DELAYS_SEED")) {
    settings.seed = static_cast<uint32_t>(std::atoi(seed));
  }
  return settings;
}

// Keeps errno, which the calls before have set.
void MaybeSleep() {
  static const Settings settings = ReadSettings();
  if (settings.one_of == 0) return;
  static std::atomic<uint32_t> threads = 0;
  thread_local uint32_t state = 2654435761u * (settings.seed + 977 * ++threads) | 1;
  // Xorshift (Marsaglia, 2003).
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  if (state % settings.one_of != 0) return;
  const int before = errno;
  const timespec time = {.tv_sec = 0, .tv_nsec = static_cast<long>(state >> 8) % 3'000'000};
  nanosleep(&time, nullptr);
  errno = before;
}

// The function of this name that is delayed.
template <class F>
F* Delayed(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  static const auto lock = Delayed<int(pthread_mutex_t*)>("pthread_mutex_lock");
  const int result = lock(mutex);
  MaybeSleep();
  return result;
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) {
  static const auto unlock = Delayed<int(pthread_mutex_t*)>("pthread_mutex_unlock");
  const int result = unlock(mutex);
  MaybeSleep();
  return result;
}

ssize_t send(int socket, const void* bytes, size_t size, int flags) {
  static const auto next = Delayed<ssize_t(int, const void*, size_t, int)>("send");
  const ssize_t result = next(socket, bytes, size, flags);
  MaybeSleep();
  return result;
}

ssize_t recv(int socket, void* bytes, size_t size, int flags) {
  static const auto next = Delayed<ssize_t(int, void*, size_t, int)>("recv");
  const ssize_t result = next(socket, bytes, size, flags);
  MaybeSleep();
  return result;
}

ssize_t sendmsg(int socket, const msghdr* message, int flags) {
  static const auto next = Delayed<ssize_t(int, const msghdr*, int)>("sendmsg");
  const ssize_t result = next(socket, message, flags);
  MaybeSleep();
  return result;
}

ssize_t recvmsg(int socket, msghdr* message, int flags) {
  static const auto next = Delayed<ssize_t(int, msghdr*, int)>("recvmsg");
  const ssize_t result = next(socket, message, flags);
  MaybeSleep();
  return result;
}

}  // extern "C"
