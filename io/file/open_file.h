// A file descriptor that is closed with its owner.
#ifndef INLAY_IO_FILE_OPEN_FILE_H_
#define INLAY_IO_FILE_OPEN_FILE_H_

#include <sys/stat.h>

#include <string>

#include "absl/status/statusor.h"

namespace inlay {

class OpenFile {
 public:
  // `flags`: O_RDONLY, O_RDWR, ...; O_CREAT makes a file with the permissions that the umask leaves
  // of 0666. InvalidArgument for what is no regular file. The errors name it.
  static absl::StatusOr<OpenFile> Open(const std::string& path, int flags);

  OpenFile() = default;  // no file
  OpenFile(OpenFile&& other) noexcept;
  OpenFile& operator=(OpenFile&& other) noexcept;
  ~OpenFile();

  int fd() const { return fd_; }
  // What the file was when it was opened.
  const struct stat& info() const { return info_; }

 private:
  explicit OpenFile(int fd) : fd_(fd) {}

  int fd_ = -1;  // -1: no file, as after a move
  struct stat info_ = {};
};

}  // namespace inlay

#endif  // INLAY_IO_FILE_OPEN_FILE_H_
