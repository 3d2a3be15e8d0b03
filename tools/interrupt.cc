#include "tools/interrupt.h"

namespace inlay {
namespace {

volatile sig_atomic_t interrupted = 0;
struct sigaction before;  // the action for the second Ctrl-C, and after the watch

void OnInterrupt(int) {
  interrupted = 1;
  sigaction(SIGINT, &before, nullptr);
}

}  // namespace

InterruptWatch::InterruptWatch() {
  interrupted = 0;
  // Reads the present action first: the handler may need it as soon as it is installed.
  sigaction(SIGINT, nullptr, &before);
  struct sigaction action = {};
  action.sa_handler = OnInterrupt;
  sigaction(SIGINT, &action, nullptr);
}

InterruptWatch::~InterruptWatch() { sigaction(SIGINT, &before, nullptr); }

bool InterruptWatch::requested() const { return interrupted != 0; }

}  // namespace inlay
