// Keeps a program's signals away from the threads that this library starts.
#ifndef INLAY_OPS_SIGNALS_BLOCKED_H_
#define INLAY_OPS_SIGNALS_BLOCKED_H_

#include <signal.h>

namespace inlay {

// While it exists, the calling thread blocks signals, and threads that it starts then block them
// for their lifetime: a signal of the process comes to a thread of the program, which may wait for
// it or have a handler that expects its own threads. Signals that a fault of the thread raises are
// not blocked, as their handlers run where the fault is, nor is that of profilers.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGPROF})
      sigdelset(&blocked, signal);
    pthread_sigmask(SIG_BLOCK, &blocked, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace inlay

#endif  // INLAY_OPS_SIGNALS_BLOCKED_H_
