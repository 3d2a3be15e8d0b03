// A lock on a file that is read, worked with for a while, and then replaced.
#ifndef INLAY_IO_FILE_FILE_LOCK_H_
#define INLAY_IO_FILE_FILE_LOCK_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "io/file/temporary_name.h"

namespace inlay {

// While it exists, no other FileLock of the same path can be acquired, in this process or another.
// Advisory: it does not stop code that acquires no FileLock. The lock is on a file PATH.lock, since
// replacing a file replaces its inode and with it any lock, and a file that does not exist yet
// cannot be locked. PATH.lock is removed with the object. One that a killed process leaves behind
// is not locked, so the next FileLock uses and then removes it.
class FileLock {
 public:
  // For the file that `path` names, symbolic links followed; the file need not exist. Unavailable
  // when another FileLock exists; FailedPrecondition when PATH.lock exists and is not an empty
  // file, so it is not a lock file. On a file system without locks, Acquire always succeeds.
  static absl::StatusOr<FileLock> Acquire(const std::string& path);

  // False where the file system has no locks: then others may work with the file, too.
  bool excludes_others() const { return excludes_others_; }

  FileLock(FileLock&& other) noexcept
      : name_(std::move(other.name_)),
        fd_(std::exchange(other.fd_, -1)),
        excludes_others_(other.excludes_others_) {}
  // The old lock ends up in `other`, whose destructor releases it.
  FileLock& operator=(FileLock&& other) noexcept {
    std::swap(name_, other.name_);
    std::swap(fd_, other.fd_);
    std::swap(excludes_others_, other.excludes_others_);
    return *this;
  }
  ~FileLock();

 private:
  FileLock(TemporaryName name, int fd, bool excludes_others)
      : name_(std::move(name)), fd_(fd), excludes_others_(excludes_others) {}

  TemporaryName name_;
  int fd_;  // -1 after a move
  bool excludes_others_;
};

}  // namespace inlay

#endif  // INLAY_IO_FILE_FILE_LOCK_H_
