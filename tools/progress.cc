#include "tools/progress.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/printable.h"
#include "tools/format.h"

namespace inlay {
namespace {

constexpr double kDrawInterval = 0.1;  // seconds

double ProgressClock() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string AmountText(uint64_t amount, ProgressUnit unit) {
  return unit == ProgressUnit::kBytes ? ByteCount(amount) : Plural(amount, "token");
}

}  // namespace

ProgressBar::ProgressBar(std::string what, uint64_t total, ProgressUnit unit)
    : what_(PrintableName(what)), total_(total), unit_(unit), shows_(isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
  // A destructor may not allocate: spaces from a text that is there.
  constexpr absl::string_view kSpaces = "                                ";
  const auto put = [](absl::string_view text) {
    [[maybe_unused]] const ssize_t n = write(STDERR_FILENO, text.data(), text.size());
  };
  if (shown_ == 0) return;
  put("\r");
  for (; shown_ > kSpaces.size(); shown_ -= kSpaces.size()) put(kSpaces);
  put(kSpaces.substr(0, shown_));
  put("\r");
}

void ProgressBar::Update(uint64_t done) {
  if (!shows_) return;
  const double now = ProgressClock();
  if (now < next_draw_) return;
  next_draw_ = now + kDrawInterval;
  const double fraction =
      total_ == 0 ? 0 : static_cast<double>(std::min(done, total_)) / static_cast<double>(total_);
  std::string line =
      Format("\r%s %3.0f %% of %s", what_, std::floor(100 * fraction), AmountText(total_, unit_));
  const size_t columns = line.size() - 1;  // an upper bound: what_ may have wide characters
  if (shown_ > columns) line.append(shown_ - columns, ' ');
  shown_ = columns;
  [[maybe_unused]] const ssize_t n = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace inlay
