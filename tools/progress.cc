#include "tools/progress.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/format.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "tools/output.h"

namespace inlay {
namespace {

constexpr double kQuiet = 0.3;     // seconds before the first line
constexpr double kInterval = 0.1;  // seconds between two lines
constexpr size_t kBarWidth = 24;
constexpr double kLineInterval = 60;  // seconds between two lines of a log

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

// Blocks of characters that take two columns, by their first and last one: those that Unicode's
// EastAsianWidth.txt says are wide or fullwidth, with the few between them that are not. wcwidth()
// knows them only in a locale that the user has chosen.
constexpr std::pair<char32_t, char32_t> kWide[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x23E9, 0x23F3},   {0x25FD, 0x25FE},
    {0x2614, 0x2615},   {0x2648, 0x2653},   {0x26A1, 0x26FF},   {0x2705, 0x27BF},
    {0x2B1B, 0x2B55},   {0x2E80, 0xA4CF},   {0xA960, 0xA97F},   {0xAC00, 0xD7A3},
    {0xF900, 0xFAFF},   {0xFE10, 0xFE1F},   {0xFE30, 0xFE6F},   {0xFF01, 0xFF60},
    {0xFFE0, 0xFFE6},   {0x16FE0, 0x18DFF}, {0x1AFF0, 0x1B2FF}, {0x1F000, 0x1F0FF},
    {0x1F18E, 0x1F19A}, {0x1F1E6, 0x1F9FF}, {0x1FA70, 0x1FAFF}, {0x20000, 0x3FFFD}};

size_t ColumnsOf(char32_t c) {
  return std::any_of(std::begin(kWide), std::end(kWide),
                     [c](const auto& block) { return c >= block.first && c <= block.second; })
             ? 2
             : 1;
}

// As much of the beginning of UTF-8 text as `columns` hold.
std::string Cut(absl::string_view text, size_t columns) {
  size_t end = 0;
  while (end < text.size()) {
    const CodePoint next = DecodeUtf8(text.substr(end));
    const size_t width = ColumnsOf(next.value);
    if (width > columns) break;
    columns -= width;
    end += next.length;
  }
  return std::string(text.substr(0, end));
}

size_t Columns(absl::string_view text) {
  size_t columns = 0;
  while (!text.empty()) {
    const CodePoint next = DecodeUtf8(text);
    columns += ColumnsOf(next.value);
    text.remove_prefix(next.length);
  }
  return columns;
}

// The rate and the time left, "2.0 requests/s, 8 s left"; "" where nothing was done since the
// start.
std::string RateAndTimeLeft(uint64_t done, uint64_t total, ProgressUnit unit, double seconds,
                            uint64_t before) {
  // Less is done than before where a download has started over.
  const double since = static_cast<double>(done - std::min(before, done));
  const double rate = seconds > 0 ? since / seconds : 0;
  if (rate == 0) return "";
  const std::string left =
      total > done ? ", " + TimeText(static_cast<double>(total - done) / rate) : "";
  return RateText(rate, unit) + left;
}

}  // namespace

std::string ProgressLine(const std::string& what, uint64_t done, uint64_t total, ProgressUnit unit,
                         double seconds, size_t width, uint64_t before) {
  if (total > 0) done = std::min(done, total);
  std::string share, bar;
  if (total > 0) {
    const double fraction = static_cast<double>(done) / static_cast<double>(total);
    const auto filled = static_cast<size_t>(fraction * kBarWidth);
    bar = absl::StrCat(" [", std::string(filled, '#'), std::string(kBarWidth - filled, '-'), "]");
    share = Format(" %3.0f %%", std::floor(100 * fraction));
  }
  std::string figures = RateAndTimeLeft(done, total, unit, seconds, before);
  if (!figures.empty()) figures = absl::StrCat(total > 0 ? ", " : " ", figures);
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
  std::string line =
      ProgressLine(what_, done, total_, unit_, seconds, TerminalColumns(fd_) - 1, done_before_);
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

LoggedProgress::LoggedProgress(const std::string& what, uint64_t total, uint64_t before,
                               ProgressUnit unit, int fd, ProgressBar::Clock clock)
    : what_(what),
      total_(total),
      before_(before),
      unit_(unit),
      fd_(fd),
      clock_(std::move(clock)),
      start_(clock_()),
      next_line_(start_ + kLineInterval),
      bar_(what, total, unit, fd, clock_) {
  bar_.SetDoneBefore(before);
}

void LoggedProgress::Update(uint64_t done, uint64_t failed) {
  const std::string failures = failed > 0 ? absl::StrCat(", ", failed, " failed") : "";
  if (std::exchange(failed_, failed) != failed) bar_.Rename(absl::StrCat(what_, failures));
  bar_.Update(done);
  if (isatty(fd_) == 1) return;
  const double now = clock_();
  if (now < next_line_) return;
  next_line_ = now + kLineInterval;
  const std::string figures = RateAndTimeLeft(done, total_, unit_, now - start_, before_);
  const std::string line = absl::StrCat("inlay: ", PrintableName(what_), ": ", done, " of ", total_,
                                        failures, figures.empty() ? "" : ", ", figures, "\n");
  [[maybe_unused]] const ssize_t n = write(fd_, line.data(), line.size());
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
