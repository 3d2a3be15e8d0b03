#include "io/file/open_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace inlay {

absl::StatusOr<OpenFile> OpenFile::Open(const std::string& path, int flags) {
  // O_NONBLOCK: opening a pipe must not wait for who opens its other end.
  OpenFile file(open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0666));
  if (file.fd_ < 0) return absl::ErrnoToStatus(errno, absl::StrCat(path, " cannot be opened"));
  if (fstat(file.fd_, &file.info_) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat(path, " cannot be examined"));
  if (S_ISDIR(file.info_.st_mode))
    return absl::InvalidArgumentError(absl::StrCat(path, " is a directory, not a file"));
  if (!S_ISREG(file.info_.st_mode))
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a regular file"));
  return file;
}

OpenFile::OpenFile(OpenFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), info_(other.info_) {}

OpenFile& OpenFile::operator=(OpenFile&& other) noexcept {
  // The old file ends up in `other`, whose destructor closes it.
  std::swap(fd_, other.fd_);
  std::swap(info_, other.info_);
  return *this;
}

OpenFile::~OpenFile() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace inlay
