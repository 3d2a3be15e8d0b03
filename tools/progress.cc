#include "tools/progress.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/printable.h"
#include "tools/format.h"

namespace inlay {
namespace {

constexpr double kQuiet = 0.3;     // seconds before the first line
constexpr double kInterval = 0.1;  // seconds between two lines
constexpr size_t kBarWidth = 24;
constexpr size_t kUsualWidth = 80;  // of a terminal that does not say

size_t WidthOf(int fd) {
  winsize size = {};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsualWidth;
  return size.ws_col;
}

std::string RateText(double rate, ProgressUnit unit) {
  if (unit == ProgressUnit::kRequests) return Format("%.*f requests/s", rate < 10 ? 1 : 0, rate);
  if (unit == ProgressUnit::kTokens) return Format("%.*f tokens/s", rate < 10 ? 1 : 0, rate);
  if (rate >= 1e9) return Format("%.1f GB/s", rate / 1e9);
  if (rate >= 1e6) return Format("%.0f MB/s", rate / 1e6);
  return Format("%.0f kB/s", rate / 1e3);
}

std::string TimeText(double seconds) {
  const auto whole = static_cast<uint64_t>(std::min(std::ceil(seconds), 1e9));
  if (whole < 100) return Format("%d s left", whole);
  if (whole < 6000) return Format("%d:%02d min left", whole / 60, whole % 60);
  return Format("%d:%02d h left", whole / 3600, whole / 60 % 60);
}

// The first `columns` characters of UTF-8 text, of which each counts as one column.
std::string Cut(absl::string_view text, size_t columns) {
  size_t end = 0;
  for (; end < text.size(); ++end) {
    const bool begins = (static_cast<unsigned char>(text[end]) & 0xC0) != 0x80;
    if (begins && columns-- == 0) break;
  }
  return std::string(text.substr(0, end));
}

size_t Columns(absl::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace

std::string ProgressLine(const std::string& what, uint64_t done, uint64_t total, ProgressUnit unit,
                         double seconds, size_t width) {
  if (total > 0) done = std::min(done, total);
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  std::string share, bar;
  if (total > 0) {
    const double fraction = static_cast<double>(done) / static_cast<double>(total);
    const auto filled = static_cast<size_t>(fraction * kBarWidth);
    bar = absl::StrCat(" [", std::string(filled, '#'), std::string(kBarWidth - filled, '-'), "]");
    share = Format(" %3.0f %%", std::floor(100 * fraction));
  }
  std::string figures;
  if (rate > 0) {
    figures = absl::StrCat(total > 0 ? ", " : " ", RateText(rate, unit));
    if (total > done)
      absl::StrAppend(&figures, ", ", TimeText(static_cast<double>(total - done) / rate));
  }
  const size_t name = Columns(what);
  if (name + bar.size() + share.size() + figures.size() > width) bar.clear();
  if (name + share.size() + figures.size() > width) figures.clear();
  return Cut(absl::StrCat(what, bar, share, figures), width);
}

ProgressBar::ProgressBar(std::string what, uint64_t total, ProgressUnit unit, int fd, Clock clock)
    : fd_(fd),
      shows_(isatty(fd) == 1),
      what_(shows_ ? PrintableName(what) : ""),
      total_(total),
      unit_(unit),
      clock_(std::move(clock)),
      start_(shows_ ? clock_() : 0),
      next_draw_(start_ + kQuiet) {}

ProgressBar::~ProgressBar() { Clear(); }

void ProgressBar::Rename(const std::string& what) {
  if (shows_) what_ = PrintableName(what);
}

void ProgressBar::Clear() {
  // Spaces clear a line on terminals that know no sequences, too. The destructor may not allocate.
  constexpr absl::string_view kSpaces = "                                ";
  const auto put = [this](absl::string_view text) {
    [[maybe_unused]] const ssize_t n = write(fd_, text.data(), text.size());
  };
  if (shown_ == 0) return;
  put("\r");
  for (; shown_ > kSpaces.size(); shown_ -= kSpaces.size()) put(kSpaces);
  put(kSpaces.substr(0, shown_));
  put("\r");
  shown_ = 0;
}

void ProgressBar::Update(uint64_t done) {
  if (!shows_) return;
  const double now = clock_();
  if (now < next_draw_) return;
  next_draw_ = now + kInterval;
  Draw(done, now - start_);
}

void ProgressBar::Draw(uint64_t done, double seconds) {
  // The last column stays free: some terminals would go to the next line.
  std::string line = ProgressLine(what_, done, total_, unit_, seconds, WidthOf(fd_) - 1);
  const size_t columns = Columns(line);
  const std::string rest(shown_ > columns ? shown_ - columns : 0, ' ');
  shown_ = columns;
  line = absl::StrCat("\r", line, rest);
  // A line that cannot be written is left out.
  [[maybe_unused]] const ssize_t n = write(fd_, line.data(), line.size());
}

double ProgressBar::MonotonicSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Progress ShowProgress(std::string what, ProgressUnit unit) {
  if (isatty(STDERR_FILENO) != 1) return nullptr;
  return [what = std::move(what), unit, bar = std::shared_ptr<ProgressBar>()](
             uint64_t done, uint64_t total) mutable {
    if (bar == nullptr) bar = std::make_shared<ProgressBar>(what, total, unit);
    bar->Update(done);
  };
}

}  // namespace inlay
