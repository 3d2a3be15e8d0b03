// Ctrl-C while something runs: the first asks it to stop, the second ends the program.
#ifndef INLAY_TOOLS_INTERRUPT_H_
#define INLAY_TOOLS_INTERRUPT_H_

#include <signal.h>

namespace inlay {

// Catches SIGINT during its lifetime. Only one may exist at a time.
class InterruptWatch {
 public:
  InterruptWatch();
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  // Whether Ctrl-C was pressed since the construction.
  bool requested() const;
};

}  // namespace inlay

#endif  // INLAY_TOOLS_INTERRUPT_H_
