#include "tools/interrupt.h"

#include <cassert>
#include <cstddef>
#include <iterator>

namespace inlay {
namespace {

// The action for a second signal, and after the watch.
struct Watched {
  int signal;
  struct sigaction before;
};

volatile sig_atomic_t first_signal = 0;
Watched watched[3];
size_t watched_count = 0;

void OnInterrupt(int signal) {
  if (first_signal == 0) first_signal = signal;
  for (size_t i = 0; i < watched_count; ++i) {
    if (watched[i].signal == signal) sigaction(signal, &watched[i].before, nullptr);
  }
}

}  // namespace

InterruptWatch::InterruptWatch(std::initializer_list<int> signals) {
  assert(signals.size() <= std::size(watched));
  first_signal = 0;
  watched_count = 0;
  for (const int signal : signals) {
    // Reads the present action first: the handler may need it as soon as it is installed.
    Watched& entry = watched[watched_count];
    entry.signal = signal;
    sigaction(signal, nullptr, &entry.before);
    if (signal != SIGINT && entry.before.sa_handler == SIG_IGN) continue;
    ++watched_count;
    struct sigaction action = {};
    action.sa_handler = OnInterrupt;
    sigaction(signal, &action, nullptr);
  }
}

InterruptWatch::~InterruptWatch() {
  for (size_t i = 0; i < watched_count; ++i)
    sigaction(watched[i].signal, &watched[i].before, nullptr);
}

int InterruptWatch::signal() const { return first_signal; }

}  // namespace inlay
