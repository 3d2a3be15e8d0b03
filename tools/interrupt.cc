#include "tools/interrupt.h"

namespace inlay {
namespace {

volatile sig_atomic_t interrupted = 0;
struct sigaction before;  // what the second Ctrl-C, and those after the watch, lead to

void OnInterrupt(int) {
  interrupted = 1;
  sigaction(SIGINT, &before, nullptr);
}

}  // namespace

InterruptWatch::InterruptWatch() {
  interrupted = 0;
  // With the action that is there now in place before the handler can need it.
  sigaction(SIGINT, nullptr, &before);
  struct sigaction action = {};
  action.sa_handler = OnInterrupt;
  sigaction(SIGINT, &action, nullptr);
}

InterruptWatch::~InterruptWatch() { sigaction(SIGINT, &before, nullptr); }

bool InterruptWatch::requested() const { return interrupted != 0; }

}  // namespace inlay
