// A progress bar on a terminal: how much is done, how fast, and how long the rest will take.
#ifndef INLAY_TOOLS_PROGRESS_H_
#define INLAY_TOOLS_PROGRESS_H_

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/progress.h"

namespace inlay {

enum class ProgressUnit { kBytes, kTokens, kRequests };

// The line of a bar, at most `width` columns wide:
//
//   loading model.gguf [#########---------------]  38 %, 1.4 GB/s, 2 s left
//
// `what` has been made printable. The bar, then the rate and the time left go where the width does
// not suffice. `seconds` is the time since the start, when `before` was done already.
std::string ProgressLine(const std::string& what, uint64_t done, uint64_t total, ProgressUnit unit,
                         double seconds, size_t width, uint64_t before = 0);

// Shows nothing where the descriptor is no terminal, and nothing in the first 0.3 seconds, so that
// what takes no time leaves no trace. Draws at most ten times a second, always on one line, which
// the destructor clears.
class ProgressBar {
 public:
  // Seconds of a monotonic clock.
  using Clock = std::function<double()>;

  // `what` may hold any bytes: it is escaped. `total` is in `unit`s; 0 if it is not known.
  ProgressBar(std::string what, uint64_t total, ProgressUnit unit, int fd = STDERR_FILENO,
              Clock clock = MonotonicSeconds);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void Update(uint64_t done);
  // What was done before the start, as of a download that goes on: no part of the rate.
  void SetDoneBefore(uint64_t done) { done_before_ = done; }
  // Changes `what`, from the next line on.
  void Rename(const std::string& what);
  // Clears the line, for something else that is shown.
  void Clear();

  static double MonotonicSeconds();

 private:
  void Draw(uint64_t done, double seconds);

  const int fd_;
  const bool shows_;
  std::string what_;
  const uint64_t total_;
  const ProgressUnit unit_;
  const Clock clock_;
  const double start_;
  double next_draw_;
  uint64_t done_before_ = 0;
  size_t shown_ = 0;  // columns of the line that stands there
};

// For work of hours, of whose pieces some fail: a bar on a terminal, and elsewhere, as in the log
// of a cluster's job, a line each minute:
//
//   inlay: answering a.jsonl: 1200 of 5000, 3 failed, 2.0 requests/s, 31:40 min left
class LoggedProgress {
 public:
  // `total` and `before`, what was done before the start, are in `unit`s.
  LoggedProgress(const std::string& what, uint64_t total, uint64_t before, ProgressUnit unit,
                 int fd = STDERR_FILENO, ProgressBar::Clock clock = ProgressBar::MonotonicSeconds);

  // `failed` are among those done.
  void Update(uint64_t done, uint64_t failed);

 private:
  const std::string what_;
  const uint64_t total_, before_;
  const ProgressUnit unit_;
  const int fd_;
  const ProgressBar::Clock clock_;
  const double start_;
  double next_line_;
  uint64_t failed_ = 0;
  ProgressBar bar_;
};

// A callback that shows a bar from its first call until its last copy is destroyed.
Progress ShowProgress(std::string what, ProgressUnit unit);

}  // namespace inlay

#endif  // INLAY_TOOLS_PROGRESS_H_
