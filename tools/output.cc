#include "tools/output.h"

#include <poll.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/utf8.h"

namespace inlay {
namespace {

constexpr size_t kBufferBytes = 64 * 1024;
constexpr char kClosedPipe[] = "inlay/closed-pipe";  // marks a status; the payload is empty

absl::Status WriteError(int fd, int error) {
  absl::Status status = absl::UnavailableError(
      absl::StrCat("cannot write to ", fd == STDERR_FILENO ? "standard error" : "standard output",
                   ": ", std::strerror(error)));
  if (error == EPIPE) status.SetPayload(kClosedPipe, absl::Cord());
  return status;
}

// Whether a terminal shows what is written; so it is assumed where a sandbox forbids the question.
bool IsShown(int fd) { return isatty(fd) == 1 || errno == EPERM; }

}  // namespace

bool HasColor(int fd) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return isatty(fd) == 1 && (no_color == nullptr || *no_color == 0) && term != nullptr &&
         absl::string_view(term) != "dumb";
}

size_t TerminalColumns(int fd) {
  winsize size = {};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col != 0 ? size.ws_col : 80;
}

Output::Output(int fd, Form form) : fd_(fd), raw_(form == Form::kRawUnlessShown && !IsShown(fd)) {}

void Output::Write(absl::string_view text) {
  if (!ok()) return;
  if (raw_) {
    buffer_.append(text.data(), text.size());
  } else {
    const std::string joined = incomplete_.empty() ? "" : absl::StrCat(incomplete_, text);
    if (!joined.empty()) text = joined;
    const size_t complete = text.size() - IncompleteUtf8Tail(text);
    buffer_ += Printable(text.substr(0, complete));
    incomplete_ = std::string(text.substr(complete));
  }
  if (buffer_.size() >= kBufferBytes) Flush();
}

void Output::WriteDimmed(absl::string_view text) {
  const bool color = HasColor(fd_);
  FinishText();
  if (color) buffer_ += "\033[2m";
  Write(text);
  FinishText();
  if (color) buffer_ += "\033[0m";
}

void Output::FinishText() { buffer_ += Printable(std::exchange(incomplete_, {})); }

void Output::Flush() {
  absl::string_view rest = buffer_;
  while (ok() && !rest.empty()) {
    const ssize_t written = write(fd_, rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {  // another process made the terminal or pipe non-blocking
      pollfd wait = {.fd = fd_, .events = POLLOUT, .revents = 0};
      poll(&wait, 1, -1);
    } else if (errno != EINTR) {
      status_ = WriteError(fd_, errno);
    }
  }
  buffer_.clear();
}

absl::Status Output::Finish() {
  FinishText();
  Flush();
  return status_;
}

void WriteNote(absl::string_view text) {
  Output err(STDERR_FILENO);
  err.Write(text);
  err.Finish().IgnoreError();
}

void WriteSentence(absl::string_view sentence) {
  WriteNote(absl::StrCat("inlay: ", sentence, "\n"));
}

void WriteDimmedNote(absl::string_view text) {
  if (text.empty()) return;
  Output err(STDERR_FILENO);
  err.WriteDimmed(text);
  err.Finish().IgnoreError();
}

bool IsClosedPipe(const absl::Status& status) { return status.GetPayload(kClosedPipe).has_value(); }

}  // namespace inlay
