// A bar on a terminal that shows how far something is.
#ifndef INLAY_TOOLS_PROGRESS_H_
#define INLAY_TOOLS_PROGRESS_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace inlay {

enum class ProgressUnit { kBytes, kTokens };

// One line on standard error, where that is a terminal, drawn at most ten times a second and
// cleared by the destructor.
class ProgressBar {
 public:
  // `what` may hold any bytes: it is escaped. `total` is in units.
  ProgressBar(std::string what, uint64_t total, ProgressUnit unit);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void Update(uint64_t done);

 private:
  std::string what_;
  uint64_t total_;
  ProgressUnit unit_;
  bool shows_;
  double next_draw_ = 0;  // seconds of a monotonic clock
  size_t shown_ = 0;      // columns of the line that stands there
};

}  // namespace inlay

#endif  // INLAY_TOOLS_PROGRESS_H_
