#include "io/file/read_fully.h"

#include <sys/types.h>
#include <unistd.h>

#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace inlay {

ReadOutcome ReadFully(int fd, absl::Span<uint8_t> into, std::optional<uint64_t> offset) {
  ReadOutcome outcome;
  while (outcome.got < into.size()) {
    const absl::Span<uint8_t> rest = into.subspan(outcome.got);
    const ssize_t n = offset.has_value() ? pread(fd, rest.data(), rest.size(),
                                                 static_cast<off_t>(*offset + outcome.got))
                                         : read(fd, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) outcome.error = errno;
    if (n <= 0) return outcome;
    outcome.got += static_cast<size_t>(n);
  }
  return outcome;
}

absl::StatusOr<std::string> ReadAt(int fd, uint64_t offset, size_t length,
                                   const std::string& path) {
  std::string bytes(length, '\0');
  const auto [got, error] =
      ReadFully(fd, {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()}, offset);
  if (error != 0) return absl::ErrnoToStatus(error, absl::StrCat(path, " cannot be read"));
  bytes.resize(got);
  return bytes;
}

}  // namespace inlay
