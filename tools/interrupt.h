// Ctrl-C and other signals while something runs: the first asks it to stop, the second ends the
// program.
#ifndef INLAY_TOOLS_INTERRUPT_H_
#define INLAY_TOOLS_INTERRUPT_H_

#include <signal.h>

#include <initializer_list>

namespace inlay {

// Catches signals during its lifetime. Only one may exist at a time.
class InterruptWatch {
 public:
  // Of `signals`, those other than SIGINT stay ignored where they are, as by nohup.
  explicit InterruptWatch(std::initializer_list<int> signals = {SIGINT});
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  // Whether one of the signals came since the construction.
  bool requested() const { return signal() != 0; }
  // The first one that came; 0: none.
  int signal() const;
};

}  // namespace inlay

#endif  // INLAY_TOOLS_INTERRUPT_H_
