// A file descriptor that is closed with its owner.
#ifndef INLAY_SERVE_BATCH_JOB_OPEN_FILE_H_
#define INLAY_SERVE_BATCH_JOB_OPEN_FILE_H_

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace inlay::serve {

class OpenFile {
 public:
  // `flags`: O_RDONLY, O_RDWR, ...; the file must exist and be a regular one, since a job that goes
  // on reads its files again. The errors name it.
  static absl::StatusOr<OpenFile> Open(const std::string& path, int flags) {
    // O_NONBLOCK: opening a pipe must not wait for who opens its other end.
    const int fd = open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat(path, " cannot be opened"));
    OpenFile file(fd);
    struct stat info;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
      return absl::InvalidArgumentError(
          absl::StrCat(path, " is not a regular file: a job that goes on reads it again"));
    return file;
  }
  OpenFile(OpenFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OpenFile& operator=(OpenFile&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~OpenFile() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }

 private:
  explicit OpenFile(int fd) : fd_(fd) {}
  int fd_;  // -1 after a move
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_BATCH_JOB_OPEN_FILE_H_
