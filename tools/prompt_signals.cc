#include "tools/prompt_signals.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace inlay {
namespace {

// The handler writes the number of a signal into this pipe.
int signal_pipe[2] = {-1, -1};

void OnPromptSignal(int signo) {
  const int error = errno;
  const auto number = static_cast<unsigned char>(signo);
  [[maybe_unused]] const ssize_t n = write(signal_pipe[1], &number, 1);
  errno = error;
}

}  // namespace

void PromptSignals::Prepare() {
  if (signal_pipe[0] == -1 && pipe2(signal_pipe, O_CLOEXEC | O_NONBLOCK) != 0)
    signal_pipe[0] = signal_pipe[1] = -1;
}

PromptSignals::PromptSignals() {
  Prepare();
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    // Without a pipe, signals do what they did before.
    if (before_[i].sa_handler == SIG_IGN || signal_pipe[1] == -1) continue;
    struct sigaction action = {};
    action.sa_handler = OnPromptSignal;
    action.sa_flags = SA_RESTART;
    sigaction(kSignals[i], &action, nullptr);
  }
}

PromptSignals::~PromptSignals() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

int PromptSignals::Wait(int fd) const {
  pollfd waits[] = {{.fd = fd, .events = POLLIN, .revents = 0},
                    {.fd = signal_pipe[0], .events = POLLIN, .revents = 0}};
  while (true) {
    unsigned char number = 0;
    if (signal_pipe[0] != -1 && read(signal_pipe[0], &number, 1) == 1) return number;
    if (poll(waits, 2, -1) < 0 && errno != EINTR) return 0;
    if (waits[0].revents != 0 && waits[1].revents == 0) return 0;
  }
}

void PromptSignals::Stop() {
  struct sigaction action = {}, ours = {};
  action.sa_handler = SIG_DFL;
  sigaction(SIGTSTP, &action, &ours);
  raise(SIGTSTP);
  sigaction(SIGTSTP, &ours, nullptr);
}

}  // namespace inlay
