#include "tools/output.h"

#include <poll.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace inlay {
namespace {

constexpr size_t kBufferBytes = 64 * 1024;

}  // namespace

void Output::Write(absl::string_view bytes) {
  if (!ok()) return;
  buffer_.append(bytes.data(), bytes.size());
  if (buffer_.size() >= kBufferBytes) Flush();
}

void Output::Flush() {
  absl::string_view rest = buffer_;
  while (ok() && !rest.empty()) {
    const ssize_t written = write(fd_, rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {  // somebody made the terminal or pipe non-blocking
      pollfd wait = {.fd = fd_, .events = POLLOUT, .revents = 0};
      poll(&wait, 1, -1);
    } else if (errno != EINTR) {
      status_ = absl::UnavailableError(absl::StrCat(
          "cannot write to ", fd_ == STDERR_FILENO ? "standard error" : "standard output", ": ",
          std::strerror(errno)));
    }
  }
  buffer_.clear();
}

absl::Status Output::Finish() {
  Flush();
  return status_;
}

}  // namespace inlay
