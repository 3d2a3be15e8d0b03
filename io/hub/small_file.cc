#include "io/hub/small_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace inlay {

absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t most) {
  // Without O_NONBLOCK opening a pipe would wait.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat(path, " cannot be read"));
  const auto close_fd = absl::MakeCleanup([fd] { close(fd); });
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a regular file"));
  std::string text(most + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t n = read(fd, &text[size], text.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::ErrnoToStatus(errno, absl::StrCat(path, " cannot be read"));
    if (n == 0) break;
    size += static_cast<size_t>(n);
  }
  if (size > most) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is larger than the ", most, " bytes that are read of such a file"));
  }
  text.resize(size);
  return text;
}

}  // namespace inlay
