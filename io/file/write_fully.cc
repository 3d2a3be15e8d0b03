#include "io/file/write_fully.h"

#include <sys/types.h>
#include <unistd.h>

#include <cerrno>

namespace inlay {

WriteOutcome WriteFully(int fd, absl::Span<const uint8_t> bytes, std::optional<uint64_t> offset) {
  WriteOutcome outcome;
  while (outcome.written < bytes.size()) {
    const absl::Span<const uint8_t> rest = bytes.subspan(outcome.written);
    const ssize_t n = offset.has_value() ? pwrite(fd, rest.data(), rest.size(),
                                                  static_cast<off_t>(*offset + outcome.written))
                                         : write(fd, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      outcome.error = n < 0 ? errno : ENOSPC;
      return outcome;
    }
    outcome.written += static_cast<size_t>(n);
  }
  return outcome;
}

}  // namespace inlay
