// Signals while a person types: what waits for the terminal wakes up for them, and nothing is cut
// off in the middle.
#ifndef INLAY_TOOLS_PROMPT_SIGNALS_H_
#define INLAY_TOOLS_PROMPT_SIGNALS_H_

#include <signal.h>

#include <array>
#include <cstddef>

namespace inlay {

// Catches SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP and SIGWINCH during its lifetime, those that
// the process ignores excepted. Only one may exist at a time. Whichever thread gets a signal, Wait
// returns it.
class PromptSignals {
 public:
  // Prepares what a sandbox would not allow later; called by the constructor otherwise.
  static void Prepare();

  PromptSignals();
  ~PromptSignals();
  PromptSignals(const PromptSignals&) = delete;
  PromptSignals& operator=(const PromptSignals&) = delete;

  // Waits until `fd` can be read or is at its end: 0, or for a signal: its number.
  int Wait(int fd) const;

  // Does what SIGTSTP does by default; returns when the process goes on.
  static void Stop();

 private:
  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};

  std::array<struct sigaction, kSignals.size()> before_;
};

}  // namespace inlay

#endif  // INLAY_TOOLS_PROMPT_SIGNALS_H_
